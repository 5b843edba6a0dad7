use comeback_contention::{Report, Strategy, Write, writes};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::chart::palette::{GRID, INK, MUTED};
use crate::chart::svg::{Area, Drawing, FONT, svg};
use crate::contention::plot::colours::colour;
use crate::contention::tables::distinct;

/// More clients than this show nothing more, and make a large file.
const READABLE_CLIENTS: u32 = 50;
/// Later calls are left out: by then the strategies differ visibly.
const WINDOW_MS: f64 = 5_000.0;
const WIDTH: u32 = 900;
const HEADER_HEIGHT: u32 = 86;
const PANEL_HEIGHT: u32 = 130;
const FOOTER_HEIGHT: u32 = 50;

/// One run of each strategy, a panel each: when each client's writes reach the server.
pub(super) fn draw(report: &Report, seed: u64) -> String {
    let most = report.cells.iter().map(|cell| cell.clients).max().unwrap_or(1);
    let clients = most.min(READABLE_CLIENTS);
    let run = |strategy| (strategy, writes(clients, strategy, seed).expect("BUG: the study was checked"));
    let runs: Vec<(Strategy, Vec<Write>)> =
        distinct(report.cells.iter().map(|cell| cell.strategy)).into_iter().map(run).collect();
    let longest =
        runs.iter().filter_map(|(_, writes)| writes.last()).map(|write| write.at_ms).fold(0.0, f64::max);
    let window = WINDOW_MS.min(longest * 1.02);
    let height = HEADER_HEIGHT + PANEL_HEIGHT * runs.len() as u32 + FOOTER_HEIGHT;
    svg((WIDTH, height), |root| {
        let (header, panels) = root.split_vertically(HEADER_HEIGHT);
        draw_header(&header, clients, window < longest)?;
        for (i, (strategy, writes)) in runs.iter().enumerate() {
            let last = i + 1 == runs.len();
            let top = PANEL_HEIGHT * i as u32;
            let bottom = top + PANEL_HEIGHT + if last { FOOTER_HEIGHT } else { 0 };
            let panel = panels.clone().shrink((0, top), (WIDTH, bottom - top));
            draw_panel(&panel, clients, window, *strategy, writes, last)?;
        }
        Ok(())
    })
}

fn draw_header(header: &Area<'_>, clients: u32, cut: bool) -> Drawing {
    let title = format!("When the calls of {clients} clients arrive");
    header.draw_text(&title, &(FONT, 22).into_text_style(header).color(&INK), (24, 18))?;
    let cut = if cut { format!("; the first {} s", WINDOW_MS / 1e3) } else { String::new() };
    let subtitle = format!("one run of each strategy, a row of dots for each client{cut}");
    let style = (FONT, 14).into_text_style(header).color(&MUTED);
    header.draw_text(&subtitle, &style, (24, 48))?;
    let y = 55;
    header.draw(&Circle::new((700, y), 3, MUTED.mix(0.6).filled()))?;
    let beside = style.pos(Pos::new(HPos::Left, VPos::Center));
    header.draw_text("refused", &beside, (709, y))?;
    header.draw(&Circle::new((784, y), 4, INK.filled()))?;
    header.draw_text("accepted", &beside, (793, y))?;
    Ok(())
}

fn draw_panel(
    panel: &Area<'_>,
    clients: u32,
    window: f64,
    strategy: Strategy,
    writes: &[Write],
    last: bool,
) -> Drawing {
    let colour = colour(strategy);
    let done = writes.last().map_or(0.0, |write| write.at_ms) / 1e3;
    let name = (FONT, 15).into_text_style(panel).color(&colour);
    panel.draw_text(strategy.name(), &name, (24, 34))?;
    let small = (FONT, 13).into_text_style(panel).color(&MUTED);
    panel.draw_text(&format!("{} calls", writes.len()), &small, (24, 58))?;
    panel.draw_text(&format!("done after {done:.1} s"), &small, (24, 76))?;
    let mut chart = ChartBuilder::on(panel)
        .margin_top(6)
        .margin_bottom(6)
        .margin_left(150)
        .margin_right(28)
        .x_label_area_size(if last { FOOTER_HEIGHT } else { 0 })
        .build_cartesian_2d(0.0..window / 1e3, -1.0..f64::from(clients))?;
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_mesh()
        .disable_y_axis()
        .x_labels(11)
        .max_light_lines(0)
        .bold_line_style(GRID)
        .axis_style(MUTED);
    mesh.label_style(small).axis_desc_style((FONT, 14).into_text_style(panel).color(&INK));
    if last {
        mesh.x_desc("seconds since the clients started");
    }
    mesh.draw()?;
    for (accepted, size, style) in [(false, 2, colour.mix(0.6).filled()), (true, 3, INK.filled())] {
        let shown = writes.iter().filter(|write| write.accepted == accepted && write.at_ms <= window);
        let dots = shown.map(|write| Circle::new((write.at_ms / 1e3, f64::from(write.client)), size, style));
        chart.draw_series(dots)?;
    }
    Ok(())
}
