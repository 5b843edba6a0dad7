//! The page for waiting events: a chart by due time, groups by function and error, and a list of the events.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use comeback_engine::Timestamp;
use comeback_operate::durations;
use comeback_operate::function::{FunctionName, command_name};
use comeback_operate::numbers::{counted, grouped};
use comeback_operate::pauses::in_force::InForce;
use comeback_operate::waiting::events::{DueRange, Selected, WaitingGroup};
use comeback_operate::waiting::filter::WaitingFilter;
use comeback_operate::waiting::reading::Reading;
use comeback_operate::waiting::report::{EVENT_HEADS, ReportQuery, WaitingReport, shown_error, shown_target};
use comeback_operate::waiting::returns::Returns;
use comeback_operate::{Answer as _, Column, Fact, Table, Text, text};
use comeback_rehearsal::axis::{CountAxis, TimeAxis};
use comeback_rehearsal::chart::{BLUE, GREEN, GREY, ORANGE, PURPLE, Padding, frame};
use comeback_rehearsal::figure::{Chart, FigureTable, LegendEntry, Values, WIDE, drawn_in};
use plotters::prelude::*;

use crate::change::PLAN;
use crate::console::{Console, LogRead};
use crate::page::{Fields, Frame, Problem, Visit, ok};
use crate::response::{encoded, go_to, html};
use crate::search::{Searched, searched};

/// Maximum number of events on one page of the list.
const A_PAGE: usize = 50;
/// Colours for the functions in the chart; the last is for all other functions together.
const COLOURS: [RGBColor; 5] = [BLUE, ORANGE, GREEN, PURPLE, GREY];

/// The names of the filter's fields. The values of `from` and `to` are in milliseconds since 1970.
const FILTER: [&str; 6] = ["function", "error", "key", "within", "from", "to"];

#[derive(Template)]
#[template(path = "waiting.html")]
struct WaitingPage {
    frame: Frame,
    filter: Fields,
    chips: Vec<Chip>,
    /// True if the page offers to act on all events that match the filter.
    offers_all: bool,
    refused: Option<String>,
    report: LogRead<Shown>,
    /// Numbers of messages in the retry queue, shown if the handler's log could not be read.
    counts: Vec<Fact>,
}

impl WaitingPage {
    /// The heading of a column of actions; empty in a read-only console.
    fn lead(&self, head: &'static str) -> &'static str {
        if self.frame.read_only { "" } else { head }
    }
}

/// An active filter, and the path of the page without it.
struct Chip {
    words: Text,
    without: String,
}

impl Chip {
    /// Returns a chip for each active filter. The two ends of a range of due times share one chip.
    fn all(fields: &Fields) -> Vec<Self> {
        let words = |name: &str| -> Option<Text> {
            let value = fields.get(name)?;
            Some(match name {
                "from" => return None,
                "to" => match fields.get("from") {
                    Some(from) => text!["due from ", moment(from), " to ", moment(value)],
                    None => text!["due by ", moment(value)],
                },
                "within" => format!("due within {value}").into(),
                name => format!("{name} {value}").into(),
            })
        };
        let chip = |name: &str| {
            let without = fields.without(&[name, "page", if name == "to" { "from" } else { "" }]);
            Some(Self { words: words(name)?, without: address(&without) })
        };
        FILTER.into_iter().filter_map(chip).collect()
    }
}

/// Parses a time in a URL: milliseconds since the Unix epoch.
fn millis(text: &str) -> Option<Timestamp> {
    text.parse().ok().filter(|millis| *millis < 1 << 50).map(Timestamp::from_millis)
}

fn moment(text: &str) -> Text {
    millis(text).map_or_else(|| text.into(), Text::from)
}

fn address(fields: &Fields) -> String {
    format!("/waiting?{}", fields.to_query())
}

struct Shown {
    /// The lines above the chart.
    counts: [Text; 2],
    found: String,
    remarks: Vec<Text>,
    chart: Option<Chart>,
    groups: Table,
    /// Actions on each group; `None` for the group that combines all events without a group of their own.
    actions: Vec<Option<GroupActions>>,
    event_columns: [Column; EVENT_HEADS.len()],
    events: Vec<Vec<Text>>,
    keys: Vec<String>,
    /// Positions of the table's events among all events that match, such as `1 to 50`.
    places: String,
    previous: Option<String>,
    next: Option<String>,
}

struct GroupActions {
    function: String,
    retry: String,
    retry_title: String,
    pause: String,
    is_paused: bool,
}

pub(super) async fn waiting(visit: Visit) -> Result<Response, Problem> {
    let fields = visit.query().unpacked();
    if let Some(text) = fields.get("q") {
        let others = fields.without(&["q", "page"]);
        return Ok(go_to(&match searched(&visit.console, text.trim()).await {
            Searched::Function(name) => address(&others.with("function", &name)),
            Searched::Error(error) => address(&others.with("error", &error)),
            Searched::WaitingKey => address(&others.with("key", text.trim())),
            Searched::Unknown => format!("/event?id={}", encoded(text.trim())),
        }));
    }
    let number = fields.get("page").and_then(|page| page.parse().ok()).unwrap_or(1usize).clamp(1, 1 << 20);
    let page = PageOf { fields: &fields, number };
    let is_dated = ["within", "from", "to"].iter().any(|name| fields.get(name).is_some());
    let filter = fields.0.iter().filter(|(name, value)| FILTER.contains(&&**name) && !value.is_empty());
    let shell = WaitingPage {
        frame: visit.frame("Waiting", None),
        filter: Fields(filter.cloned().collect()),
        chips: Chip::all(&fields),
        offers_all: !is_dated,
        refused: page.listing(Timestamp::from_secs(0)).err(),
        report: LogRead::Reading(0),
        counts: Vec::new(),
    };
    if shell.refused.is_some() {
        return Ok(html(StatusCode::BAD_REQUEST, &shell));
    }
    let look = |reading: &Reading, now| {
        let listing = page.listing(now).expect("BUG: the filter cannot be read again");
        page.shown(reading, &reading.report(&listing, now), now)
    };
    let report = visit.console.waiting(look).await;
    let is_unread = matches!(report, LogRead::Read { value: Err(_), .. });
    let counts = if is_unread { counts(&visit.console).await } else { Vec::new() };
    ok(&WaitingPage { frame: visit.frame("Waiting", report.at()), report, counts, ..shell })
}

/// Redirects to the plan for an action on the chosen events.
pub(super) async fn chosen(visit: Visit) -> Result<Response, Problem> {
    let fields = visit.query().unpacked();
    let path = match fields.get("do") {
        Some("retry") => "/retry",
        Some("cancel") => "/cancel",
        Some("pause") => {
            let function = fields.get("function").unwrap_or_default();
            return Ok(go_to(&format!("/pause?function={}", encoded(function))));
        }
        _ => return Err(Problem::incomplete()),
    };
    let mut asked = Fields::default().with(PLAN, "yes");
    asked = asked.with("function", fields.get("function").unwrap_or("*"));
    if fields.get("all").is_some() {
        let filter = ["error", "key"].into_iter().filter_map(|name| Some((name, fields.get(name)?)));
        asked = filter.fold(asked, |asked, (name, value)| asked.with(name, value));
    } else {
        asked.0.extend(fields.all("event").map(|key| ("key".to_owned(), key.to_owned())));
        if fields.get("event").is_none() {
            return Err(Problem::bad_request("No event was chosen. Go back and check at least one."));
        }
    }
    Ok(go_to(&format!("{path}?{}", asked.to_query())))
}

async fn counts(console: &Console) -> Vec<Fact> {
    let Ok(status) = console.status().await.value else { return Vec::new() };
    let [waiting, due, _] = status.counts();
    vec![waiting, due]
}

struct PageOf<'a> {
    fields: &'a Fields,
    number: usize,
}

impl PageOf<'_> {
    /// Parses the filter, and picks the events that this page shows; the error names the invalid field.
    fn listing(&self, now: Timestamp) -> Result<ReportQuery, String> {
        let Self { fields, number } = *self;
        let functions = fields.read("function", "Function", str::parse::<FunctionName>)?;
        let within = fields.read("within", "Due within", durations::read)?;
        let time = |text: &str| millis(text).ok_or_else(|| "not a number of milliseconds".to_owned());
        let end = |name: &str| fields.read(name, "Due", time);
        let within = within.map(|within| now.saturating_add(within));
        let due = DueRange { from: end("from")?, by: end("to")?.or(within) };
        let wanted = WaitingFilter {
            functions: functions.into_iter().collect(),
            error: fields.get("error").map(ToOwned::to_owned),
            keys: fields.get("key").map(ToOwned::to_owned).into_iter().collect(),
        };
        let begin = (number - 1) * A_PAGE;
        Ok(ReportQuery { wanted, due, events: Some(begin..begin + A_PAGE) })
    }

    fn shown(&self, reading: &Reading, report: &WaitingReport<'_>, now: Timestamp) -> Shown {
        let Self { fields, number } = *self;
        let events: Vec<_> = report.rows().collect();
        let begin = (number - 1) * A_PAGE;
        let end = begin + events.len();
        let to = |number: usize| address(&fields.with("page", &number.to_string()));
        Shown {
            counts: [report.heading(), report.in_queue()],
            found: counted(report.found, "waiting event", "waiting events"),
            remarks: report.remarks(),
            chart: (report.found > report.returns.without_due).then(|| chart(&report.returns, fields)),
            groups: report.groups_table(),
            actions: report.groups.iter().map(|group| actions(group, reading, now)).collect(),
            places: format!("{} to {}", grouped(begin as u64 + 1), grouped(end as u64)),
            previous: (number > 1).then(|| to(number - 1)),
            next: ((end as u64) < report.found && !events.is_empty()).then(|| to(number + 1)),
            event_columns: EVENT_HEADS.map(Column::new),
            keys: report.events.iter().flat_map(Selected::iter).map(|event| event.key.to_owned()).collect(),
            events,
        }
    }
}

fn actions(group: &WaitingGroup<'_>, reading: &Reading, now: Timestamp) -> Option<GroupActions> {
    let target = group.target?;
    let name = encoded(&command_name(target, &reading.deployment.handler_arn));
    let error = group.error_type.map(|error| format!("&error={}", encoded(error))).unwrap_or_default();
    let is_paused = matches!(reading.in_force(target, now), Some(InForce::Paused { .. }));
    let pause = if is_paused { "resume?plan=yes&" } else { "pause?" };
    let function = shown_target(group.target).to_owned();
    Some(GroupActions {
        retry_title: format!("Retry now: {function}, {}", shown_error(group.target, group.error_type)),
        function,
        retry: format!("/retry?plan=yes&function={name}{error}"),
        pause: format!("/{pause}function={name}"),
        is_paused,
    })
}

/// A bar chart of the waiting events by due time, stacked by function.
fn chart(returns: &Returns<'_>, fields: &Fields) -> Chart {
    let period = returns.period;
    let names: Vec<String> = returns.functions.iter().map(|it| shown_target(it.target).to_owned()).collect();
    let colour = |index: usize| match returns.functions[index].target {
        Some(_) => COLOURS[index],
        None => COLOURS[COLOURS.len() - 1],
    };
    let keys = names.iter().enumerate();
    let keys =
        keys.map(|(index, name)| LegendEntry { symbol: "■", colour: colour(index), label: name.clone() });
    let totals: Vec<u64> = (0..returns.periods()).map(|period| returns.total(period)).collect();
    let begins = |period: usize| durations::text(returns.period * period as u32);
    let most = totals.iter().copied().enumerate().max_by_key(|(period, total)| (*total, usize::MAX - period));
    let (busiest, most) = most.unwrap_or_default();
    let picture = drawn_in(WIDE, |root| {
        let end = returns.period.as_secs_f64() * totals.len() as f64;
        let highest = CountAxis::over([most as f64].into_iter(), false);
        let mut chart = frame(root, (TimeAxis::linear(end), "time from now"), (highest, ""), Padding::PAGE)?;
        for period in 0..totals.len() {
            let (left, right) = (period as f64, period as f64 + 0.9);
            let [left, right] = [left, right].map(|at| at * returns.period.as_secs_f64());
            let mut low = 0.0;
            for (index, function) in returns.functions.iter().enumerate() {
                let high = low + function.counts[period] as f64;
                if high > low {
                    let bar = Rectangle::new([(left, low), (right, high)], colour(index).filled());
                    chart.draw_series([bar])?;
                }
                low = high;
            }
        }
        Ok(())
    });
    let columns = returns.functions.iter().zip(&names).map(|(function, name)| {
        (name.clone(), function.counts.iter().map(|count| grouped(*count)).collect())
    });
    let from = (0..totals.len()).map(|period| format!("from {}", begins(period))).collect();
    Chart {
        id: "returns",
        heading: format!("When they come back, by {}", durations::text(period)),
        description: format!(
            "Most events in a column: {}, within the {} that begin {} from now.",
            grouped(most),
            durations::text(period),
            begins(busiest)
        ),
        keys: keys.collect(),
        picture: picture.with_values(values(returns, &names, fields)),
        table: Some(FigureTable {
            caption: "Events by due time, from now".into(),
            columns: std::iter::once(("from now".to_owned(), from)).chain(columns).collect(),
        }),
    }
}

/// Returns a tooltip for each period in which events are due, with a link to these events.
fn values<'r>(
    returns: &'r Returns<'_>,
    names: &'r [String],
    fields: &'r Fields,
) -> impl Iterator<Item = Values> + use<'r> {
    let share = |period: usize| period as f64 / returns.periods() as f64;
    let at = |period: usize| returns.from.saturating_add(returns.period * period as u32);
    let busy = (0..returns.periods()).filter(|period| returns.total(*period) > 0);
    busy.map(move |period| {
        let counts = returns.functions.iter().zip(names).map(|(it, name)| (it.counts[period], name));
        let counts = counts.filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts.map(|(count, name)| format!("{name}: {}", grouped(count))).collect();
        let [begin, end] = [period, period + 1].map(|it| durations::text(returns.period * it as u32));
        // The first period also contains the events that were due earlier, so its filter has no `from`.
        let mut filter = fields.without(&["page", "within", "from", "to"]);
        if period > 0 {
            filter = filter.with("from", &at(period).as_millis().to_string());
        }
        let last = at(period + 1).as_millis().saturating_sub(1);
        let filter = filter.with("to", &last.to_string());
        Values {
            from: share(period),
            to: share(period + 1),
            text: format!("in {begin} to {end}\n{}", counts.join("\n")),
            href: Some(address(&filter)),
        }
    })
}
