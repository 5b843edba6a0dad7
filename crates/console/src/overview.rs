//! The first page: counts, the functions from worst to best, and charts for the last few hours.

use askama::Template;
use axum::response::Response;
use comeback_engine::Timestamp;
use comeback_operate::attach::attachments::none_attached;
use comeback_operate::deployment::Deployment;
use comeback_operate::durations::short;
use comeback_operate::function::{command_name, is_same_function, shown_name};
use comeback_operate::history::History;
use comeback_operate::layout::Fact;
use comeback_operate::numbers::grouped;
use comeback_operate::pauses::OpenPause;
use comeback_operate::status::{DEAD_LETTERS, DUE, WAITING};
use comeback_operate::waiting::functions::{FunctionState, Health};
use comeback_operate::waiting::reading::Reading;
use comeback_operate::waiting::recent::EventCounts;
use comeback_operate::{Block, Piece, Text, Tone, durations};
use comeback_rehearsal::figure::Chart;
use futures_util::future::join;

use crate::console::{Console, LogRead};
use crate::draw::class;
use crate::history;
use crate::page::{Frame, Problem, Visit, ok};
use crate::response::encoded;

const MOST_FUNCTIONS: usize = 50;
/// If all of a function's waiting events are due within this many seconds, the page does not offer *Retry now*.
const SOON: u64 = 60;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    tiles: Vec<Tile>,
    /// Facts that the page shows prominently.
    loud: Vec<Fact>,
    quiet: Vec<Fact>,
    /// Name of each open pause, and the path of the page for ending it.
    pauses: Vec<(String, String)>,
    functions: LogRead<FunctionTable>,
    /// Charts for the last few hours; empty if CloudWatch has no data.
    charts: Vec<Chart>,
}

/// A large number at the top of the page, with its title.
struct Tile {
    title: &'static str,
    count: String,
    rest: Text,
    /// The change in the tile's number over the last hour, in words; empty if it is unknown.
    change: String,
    tone: &'static str,
    href: Option<&'static str>,
}

struct FunctionTable {
    rows: Vec<Row>,
    last_hour: Vec<InLastHour>,
    /// Patterns on the allow-list. Functions that match them may have no row in the table.
    patterns: Vec<String>,
    /// The line in place of an empty table.
    none: Text,
}

/// The title of a tile, and the change in the tile's number over the last hour, in words.
type InLastHour = (&'static str, String);

struct Row {
    name: String,
    href: String,
    state: &'static str,
    tone: &'static str,
    since: Text,
    waiting: u64,
    due: u64,
    dead_lettered: u64,
    error: String,
    spark: Spark,
    back: Text,
    /// Path of the retry plan for the function's waiting events, or `None` if a retry would change nothing.
    retry: Option<String>,
    /// The label and path of the *Pause* or *Resume* button, or `None` if the function's pause also covers other
    /// functions.
    pause: Option<(&'static str, String)>,
}

/// A small chart of a function's last three hours, with failures above the middle and retries below it.
struct Spark {
    bars: Vec<Bar>,
    words: String,
}

/// A bar in a small chart, in SVG units.
struct Bar {
    x: usize,
    y: u64,
    height: u64,
    class: &'static str,
}

pub(super) async fn overview(visit: Visit) -> Result<Response, Problem> {
    let console = &visit.console;
    let (read, mut functions) = join(console.status(), functions(console)).await;
    let status = read.value?;
    let open: Vec<_> = status.pauses.iter().flatten().map(resume).collect();
    let mut last_hour = Vec::new();
    if let LogRead::Read { value: Ok(table), .. } = &mut functions {
        table.rows.iter_mut().for_each(|row| row.resume_if(&open));
        last_hour = std::mem::take(&mut table.last_hour);
    }
    let (tiles, facts): (Vec<_>, Vec<_>) = status.facts().into_iter().partition(|fact| fact.count.is_some());
    let (loud, quiet) = facts.into_iter().partition(is_loud);
    ok(&Overview {
        frame: visit.frame("Overview", Some(read.at)),
        tiles: tiles.into_iter().map(|fact| tile(fact, &last_hour)).collect(),
        pauses: open,
        loud,
        quiet,
        functions,
        charts: status.metrics.history.iter().flat_map(charts).collect(),
    })
}

fn charts(history: &History) -> Vec<Chart> {
    let series = history.layout().0.into_iter().filter_map(|block| match block {
        Block::Series(series) => Some(history::chart(&series)),
        _ => None,
    });
    series.collect()
}

fn tone(lines: &[Text]) -> Tone {
    lines.iter().map(Text::tone).max().unwrap_or_default()
}

fn is_loud(fact: &Fact) -> bool {
    tone(&fact.lines) >= Tone::Warning || ["Retry now", "Cancel"].contains(&fact.title)
}

fn tile(Fact { title, count, lines }: Fact, last_hour: &[InLastHour]) -> Tile {
    let change = last_hour.iter().find(|(of, _)| *of == title);
    Tile {
        title,
        count: count.map(|(count, _)| grouped(count)).unwrap_or_default(),
        tone: class(tone(&lines)),
        rest: Text::joined(lines, " "),
        change: change.map(|(_, change)| change.clone()).unwrap_or_default(),
        href: match title {
            WAITING => Some("/waiting"),
            DEAD_LETTERS => Some("/dead"),
            _ => None,
        },
    }
}

fn resume(open: &OpenPause) -> (String, String) {
    let target = open.pause.target.to_string();
    let name = target.parse().map_or_else(|_| target.clone(), |function| command_name(&target, &function));
    let path = format!("/resume?plan=yes&function={}", encoded(&name));
    (open.name(), path)
}

/// The change in each tile's number over the last hour, according to the handler's log. For due events, this is the
/// number an hour ago, not the change since then.
fn last_hour(states: &[FunctionState<'_>], due_before: u64) -> Vec<InLastHour> {
    let hours: Vec<_> = states.iter().map(FunctionState::last_hour).collect();
    let EventCounts { failed, retried, dead_lettered } = EventCounts::sum(&hours);
    let change = failed as i64 - (retried + dead_lettered) as i64;
    let by = grouped(change.unsigned_abs());
    let waiting = match change {
        0 => "unchanged in the last hour".into(),
        1.. => format!("+{by} in the last hour"),
        _ => format!("−{by} in the last hour"),
    };
    let number = |count: u64| if count == 0 { "none".into() } else { grouped(count) };
    vec![
        (WAITING, waiting),
        (DUE, format!("{} an hour ago", number(due_before))),
        (DEAD_LETTERS, format!("{} new in the last hour", number(dead_lettered))),
    ]
}

async fn functions(console: &Console) -> LogRead<FunctionTable> {
    let look = |reading: &Reading, now| {
        let states = reading.functions(now);
        let deployment = &reading.deployment;
        let (patterns, listed): (Vec<&str>, Vec<&str>) =
            deployment.target_functions().partition(|entry| entry.contains('*'));
        let is_logged = |arn: &str| states.iter().any(|state| is_same_function(state.target, arn));
        let others = listed.into_iter().filter(|arn| !is_logged(arn));
        let others: Vec<_> = others.map(|arn| reading.unlogged_function(arn, now)).collect();
        let shown = states.iter().chain(&others).take(MOST_FUNCTIONS);
        FunctionTable {
            rows: shown.map(|state| Row::of(state, deployment, now)).collect(),
            last_hour: last_hour(&states, reading.due_an_hour_ago(now)),
            patterns: patterns.into_iter().map(ToOwned::to_owned).collect(),
            none: none_attached(deployment),
        }
    };
    console.waiting(look).await
}

impl Row {
    fn of(state: &FunctionState<'_>, deployment: &Deployment, now: Timestamp) -> Self {
        let name = command_name(state.target, &deployment.handler_arn);
        let href = encoded(&name);
        let is_worth_it = state.back_by.is_none_or(|by| by.since(now).as_secs() > SOON);
        let can_retry = state.waiting > 0 && state.state != Health::Paused && is_worth_it;
        Self {
            name: shown_name(state.target).to_owned(),
            state: state.state.in_words(),
            tone: state_class(state.state),
            since: state.since.map(|at| moment(ago(at, now), at)).unwrap_or_default(),
            error: match (state.waiting, state.error) {
                (0, _) => String::new(),
                (_, error) => error.unwrap_or("none known").to_owned(),
            },
            back: back(state, now),
            retry: can_retry.then(|| format!("/retry?plan=yes&function={href}")),
            pause: Some(("Pause", format!("/pause?function={href}"))),
            href,
            waiting: state.waiting,
            due: state.due,
            dead_lettered: state.dead_lettered,
            spark: Spark::of(&state.steps),
        }
    }

    /// Shows the *Resume* button for a paused function, but only if an open pause covers that function alone.
    fn resume_if(&mut self, open: &[(String, String)]) {
        if self.state == Health::Paused.in_words() {
            let path = format!("/resume?plan=yes&function={}", self.href);
            self.pause = open.iter().any(|(_, open)| *open == path).then_some(("Resume", path));
        }
    }
}

fn state_class(state: Health) -> &'static str {
    match state {
        Health::Failing | Health::DeadLettering => "bad",
        Health::Throttled | Health::Paused => "warn",
        Health::Recovering => "good",
        Health::Quiet => "",
    }
}

/// Returns text that says when the last of a function's waiting events is due.
fn back(state: &FunctionState<'_>, now: Timestamp) -> Text {
    match state.back_by {
        _ if state.waiting == 0 => Text::default(),
        Some(by) if by > now => moment(format!("within {}", short(by.since(now).as_secs_f64().ceil())), by),
        Some(_) => "due now".into(),
        None if state.held > 0 => "after the pause".into(),
        None => "unknown".into(),
    }
}

fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("{} ago", short(now.since(at).as_secs_f64().floor()))
}

fn moment(shown: String, at: Timestamp) -> Text {
    Piece::Moment { shown, at }.into()
}

impl Spark {
    /// Half the chart's height, in SVG units.
    const MIDDLE: u64 = 12;

    fn of(steps: &[EventCounts]) -> Self {
        let most = steps.iter().map(|step| step.failed.max(step.retried)).max().unwrap_or(0).max(1);
        let height = |count: u64| (count * Self::MIDDLE).div_ceil(most);
        let bars = steps.iter().enumerate().flat_map(|(n, step)| {
            let (x, failed, retried) = (3 * n, height(step.failed), height(step.retried));
            [
                Bar { x, y: Self::MIDDLE - failed, height: failed, class: "failed" },
                Bar { x, y: Self::MIDDLE, height: retried, class: "retried" },
            ]
        });
        let EventCounts { failed, retried, .. } = EventCounts::sum(steps);
        Self {
            bars: bars.filter(|bar| bar.height > 0).collect(),
            words: match (failed, retried) {
                (0, 0) => String::new(),
                _ => format!(
                    "{} failures and {} retries in the last 3h, in steps of {}",
                    grouped(failed),
                    grouped(retried),
                    durations::text(comeback_operate::waiting::recent::STEP)
                ),
            },
        }
    }
}
