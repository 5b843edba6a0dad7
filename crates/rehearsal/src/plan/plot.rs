//! The picture that `comeback plan` draws: recovery time against retries.

use comeback_timelapse::{Candidate, PolicyPlan};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::axis::{CountAxis, TimeAxis};
use crate::chart::{
    Area, BLUE, Drawing, GREEN, GREY, INK, LineStyle, MUTED, ORANGE, PURPLE, Padding, frame, header, style,
    svg, write,
};
use crate::plan::words::{headline, time};

const SIZE: (u32, u32) = (900, 560);
const JITTERS: [(&str, RGBColor); 3] = [("full", BLUE), ("equal", GREEN), ("decorrelated", PURPLE)];

/// Draws a point for each policy that loses no event. Its position shows the recovery time and the retries per event.
pub fn draw(plan: &PolicyPlan) -> String {
    let points: Vec<(&Candidate, (f64, f64))> =
        plan.grid.iter().filter(|policy| policy.loses_nothing()).filter_map(point).collect();
    let goal = plan.goal.recover_within.as_secs_f64();
    let times = || points.iter().map(|(_, (seconds, _))| *seconds).chain([goal]);
    let x = TimeAxis::logarithmic(times().fold(goal, f64::min) / 1.3, times().fold(goal, f64::max) * 1.3);
    let y = CountAxis::over(
        points.iter().map(|(_, (_, retries))| *retries).chain(points.is_empty().then_some(1.0)),
        true,
    );
    svg(SIZE, |root| {
        draw_key(root, plan)?;
        let x_title = "time from the end of the outage until 99 % of its events are delivered (logarithmic \
                       scale)";
        let y_title = "retries per event (logarithmic scale)";
        let mut chart = frame(root, (x, x_title), (y, y_title), Padding::below(112))?;
        let unbeaten: Vec<(f64, f64)> = plan.unbeaten.iter().filter_map(point).map(|(_, at)| at).collect();
        LineStyle::Thin.draw(&mut chart, unbeaten, GREY)?;
        chart.draw_series(points.iter().map(|(policy, at)| Circle::new(*at, 4, colour(policy).filled())))?;
        // The label of the cheapest policy is below its point, because no other policy lies there.
        let marked =
            plan.cheapest.iter().map(|policy| (policy, "the cheapest that meets the goal", VPos::Top, 10));
        for (policy, what, edge, below) in marked.chain([(&plan.defaults, "the defaults", VPos::Bottom, -8)])
        {
            let Some((_, at)) = point(policy) else { continue };
            let (x, y) = chart.backend_coord(&at);
            root.draw(&Circle::new((x, y), 8, ORANGE.stroke_width(2)))?;
            let [cap, base] = [policy.max_backoff, policy.base_backoff].map(time);
            let text = format!("{what}: {cap}, {}, {base}", policy.jitter);
            let (side, beside) = if x < SIZE.0 as i32 / 2 { (HPos::Left, 14) } else { (HPos::Right, -14) };
            write(root, &text, style(14, INK, side, edge), (x + beside, y + below))?;
        }
        Ok(())
    })
}

fn draw_key(root: &Area<'_>, plan: &PolicyPlan) -> Drawing {
    header(root, "How fast each policy recovers, and with how many retries", headline(plan).lines(), 18)?;
    let label = |text: &str, x| write(root, text, style(14, MUTED, HPos::Left, VPos::Center), (x, 98));
    for (x, (jitter, colour)) in (34..).step_by(140).zip(JITTERS) {
        root.draw(&Circle::new((x, 98), 4, colour.filled()))?;
        label(&format!("jitter {jitter}"), x + 10)?;
    }
    root.draw(&PathElement::new([(476, 98), (500, 98)], GREY.stroke_width(1)))?;
    label("no other policy beats these", 508)
}

fn point(policy: &Candidate) -> Option<(&Candidate, (f64, f64))> {
    policy.recovery_ms.map(|recovery| (policy, (recovery.p99 as f64 / 1e3, policy.retries_per_event)))
}

fn colour(policy: &Candidate) -> RGBColor {
    let known = JITTERS.iter().find(|(jitter, _)| *jitter == policy.jitter);
    known.expect("BUG: a jitter without a colour").1
}
