//! Waiting events: the times when they come back, groups by function and error, and each event.

use std::rc::Rc;

use askama::Template;
use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;
use comeback_engine::Timestamp;
use comeback_operate::Text;
use comeback_operate::durations;
use comeback_operate::function::{FunctionName, command_name};
use comeback_operate::layout::Fact;
use comeback_operate::numbers::{counted, grouped};
use comeback_operate::pauses::in_force::InForce;
use comeback_operate::pauses::requests::RequestInForce;
use comeback_operate::status::{DUE, WAITING};
use comeback_operate::waiting::events::{Group, WaitingEvent, Why};
use comeback_operate::waiting::reading::Reading;
use comeback_operate::waiting::report::{Listing, Report, age, due};
use comeback_operate::waiting::returns::Returns;
use comeback_operate::waiting::wanted::Wanted;
use comeback_rehearsal::axis::{CountAxis, TimeAxis};
use comeback_rehearsal::chart::{BLUE, GREEN, GREY, ORANGE, PURPLE};
use comeback_rehearsal::figure::{Chart, Key, Table, drawn, frame};
use plotters::prelude::*;

use crate::change::PLAN;
use crate::console::{Console, Waiting};
use crate::fresh::Read;
use crate::page::{Fields, Frame, Moment, Problem, Visit, encoded, function_name, ok, page};
use crate::response::{go_to, html};

/// Events on a page.
const A_PAGE: usize = 100;
/// The colours of the functions in the chart; the last is for all others together.
const COLOURS: [RGBColor; 5] = [BLUE, ORANGE, GREEN, PURPLE, GREY];

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/waiting", page(waiting)).route("/waiting/chosen", page(chosen))
}

#[derive(Template)]
#[template(path = "waiting.html")]
struct WaitingPage {
    frame: Frame,
    /// The filter, as it was given.
    function: String,
    error: String,
    within: String,
    key: String,
    /// The events that its form is about may be all that match the filter.
    offers_all: bool,
    /// The reason why the filter was refused.
    refused: Option<String>,
    /// `None` while the log is read for the first time.
    report: Result<Option<Shown>, Text>,
    pages_read: u64,
    /// The depth of the retry queue, if the log could not be read.
    counts: Vec<(&'static str, Text)>,
}

/// A report, as the page shows it.
struct Shown {
    found: String,
    /// The number of all waiting events, whatever the filter; empty if none waits.
    all: String,
    queue: String,
    requests: Vec<Text>,
    notes: Vec<Text>,
    chart: Option<Chart>,
    groups: Vec<GroupRow>,
    events: Vec<EventRow>,
    /// `1 to 100`
    places: String,
    previous: Option<String>,
    next: Option<String>,
}

pub(super) struct GroupRow {
    pub(super) count: String,
    function: String,
    pub(super) error: String,
    pub(super) first_failure: Moment,
    pub(super) next_due: Moment,
    pub(super) last_due: Moment,
    pub(super) why: String,
    /// The addresses of its actions. `None` if there were too many functions to tell them apart.
    actions: Option<GroupActions>,
}

struct GroupActions {
    retry: String,
    pause: String,
    is_paused: bool,
}

struct EventRow {
    key: String,
    href: String,
    function: String,
    retry: u64,
    error: String,
    first_failure: Moment,
    due: Moment,
    why: &'static str,
}

async fn waiting(visit: Visit) -> Result<Response, Problem> {
    let fields = visit.query();
    let field = |name: &str| fields.get(name).unwrap_or_default().to_owned();
    let number = fields.get("page").and_then(|page| page.parse().ok()).unwrap_or(1usize).clamp(1, 1 << 20);
    let page = PageOf { fields: &fields, number };
    let shell = WaitingPage {
        frame: visit.frame("Waiting", None),
        function: field("function"),
        error: field("error"),
        within: field("within"),
        key: field("key"),
        offers_all: fields.get("within").is_none(),
        refused: page.listing(Timestamp::from_secs(0)).err(),
        report: Ok(None),
        pages_read: 0,
        counts: Vec::new(),
    };
    if shell.refused.is_some() {
        return Ok(html(StatusCode::BAD_REQUEST, &shell));
    }
    let look = |reading: &mut Reading, now| {
        reading.apply_pauses(now);
        let listing = page.listing(now).expect("BUG: it was just read");
        page.shown(reading, &reading.report(&listing, now), now)
    };
    let read = visit.console.waiting(look).await;
    let (at, report, pages_read) = match read {
        Waiting::Reading(pages) => (None, Ok(None), pages),
        Waiting::Read(Read { at, value }) => {
            (Some(at), value.map(Rc::into_inner).map_err(|failure| failure.text()), 0)
        }
    };
    let counts = if report.is_err() { counts(&visit.console).await } else { Vec::new() };
    ok(&WaitingPage { frame: visit.frame("Waiting", at), report, pages_read, counts, ..shell })
}

/// Leads from the chosen events to the plan of what is to be done with them. Those that match the filter are named by it, the
/// others by their keys.
async fn chosen(visit: Visit) -> Result<Response, Problem> {
    let fields = visit.query();
    let refused = |why: &str| Problem::Refused(StatusCode::BAD_REQUEST, why.into());
    let path = match fields.get("do") {
        Some("retry") => "/retry",
        Some("cancel") => "/cancel",
        _ => return Err(refused("The form is incomplete.")),
    };
    let mut asked = Fields::default().with(PLAN, "yes");
    asked = asked.with("function", fields.get("function").unwrap_or("*"));
    if fields.get("all").is_some() {
        let filter = ["error", "key"].into_iter().filter_map(|name| Some((name, fields.get(name)?)));
        asked = filter.fold(asked, |asked, (name, value)| asked.with(name, value));
    } else {
        asked.0.extend(fields.all("event").map(|key| ("key".to_owned(), key.to_owned())));
        if fields.get("event").is_none() {
            return Err(refused("No event was chosen. Go back and check at least one."));
        }
    }
    Ok(go_to(&format!("{path}?{}", asked.to_query())))
}

/// The depth of the retry queue, if it can be read.
async fn counts(console: &Console) -> Vec<(&'static str, Text)> {
    let Ok(status) = console.status().await.value else { return Vec::new() };
    let counts = status.facts().into_iter().filter(|fact| [WAITING, DUE].contains(&fact.title));
    let line = |fact: &Fact| Text::joined(fact.text(), " ");
    counts.map(|fact| (fact.title, line(&fact))).collect()
}

/// A page of the waiting events, as the address names it.
struct PageOf<'a> {
    fields: &'a Fields,
    number: usize,
}

impl PageOf<'_> {
    /// The filter, and the events of the page.
    fn listing(&self, now: Timestamp) -> Result<Listing, String> {
        let Self { fields, number } = *self;
        let functions = fields.get("function").map(|name| name.parse::<FunctionName>());
        let functions = functions.transpose().map_err(|why| format!("Function: {why}"))?;
        let within = fields.get("within").map(durations::read).transpose();
        let within = within.map_err(|why| format!("Due within: {why}"))?;
        let wanted = Wanted {
            functions: functions.into_iter().collect(),
            error: fields.get("error").map(ToOwned::to_owned),
            keys: fields.get("key").map(ToOwned::to_owned).into_iter().collect(),
        };
        let begin = (number - 1) * A_PAGE;
        let by = within.map(|within| now.saturating_add(within));
        Ok(Listing { wanted, by, events: Some(begin..begin + A_PAGE) })
    }

    fn shown(&self, reading: &Reading, report: &Report<'_>, now: Timestamp) -> Shown {
        let Self { fields, number } = *self;
        let events: Vec<_> = report.events.iter().flat_map(|events| events.iter()).collect();
        let begin = (number - 1) * A_PAGE;
        let end = begin + events.len();
        let to = |number: usize| format!("/waiting?{}", fields.with("page", &number.to_string()).to_query());
        Shown {
            found: counted(report.found, "waiting event", "waiting events"),
            all: Some(reading.waits.count() as u64)
                .filter(|all| *all > 0)
                .map(|all| counted(all, "waiting event", "waiting events"))
                .unwrap_or_default(),
            queue: grouped(report.retry_queue.total()),
            requests: report.requests.iter().flatten().map(in_force).collect(),
            notes: report.notes.clone(),
            chart: (report.found > report.returns.without_due).then(|| chart(&report.returns)),
            groups: report.groups.iter().map(|group| group_row(group, reading, now)).collect(),
            places: format!("{} to {}", grouped(begin as u64 + 1), grouped(end as u64)),
            previous: (number > 1).then(|| to(number - 1)),
            next: ((end as u64) < report.found && !events.is_empty()).then(|| to(number + 1)),
            events: events.iter().map(|event| event_row(event, now)).collect(),
        }
    }
}

fn in_force(request: &RequestInForce) -> Text {
    Text::from(format!("In force: {} ", request.ask.title())).and(request.line())
}

fn function(target: Option<&str>) -> String {
    target.map_or("others", function_name).to_owned()
}

fn error(target: Option<&str>, error_type: Option<&str>) -> String {
    error_type.unwrap_or(if target.is_some() { "unknown" } else { "others" }).to_owned()
}

pub(super) fn group_row(group: &Group<'_>, reading: &Reading, now: Timestamp) -> GroupRow {
    let otherwise = if group.held > 0 { Why::Pause } else { Why::FailedCall };
    let last_due = group.last_due.filter(|_| group.held == 0);
    let why = |(why, count): (&Why, &u64)| format!("{} {}", grouped(*count), why.in_words());
    let actions = group.target.map(|target| {
        let name = encoded(&command_name(target, &reading.deployment().handler_arn));
        let error = group.error_type.map(|error| format!("&error={}", encoded(error))).unwrap_or_default();
        let is_paused = matches!(reading.in_force(target, now), Some(InForce::Paused { .. }));
        let pause = if is_paused { "resume?plan=yes&" } else { "pause?" };
        GroupActions {
            retry: format!("/retry?plan=yes&function={name}{error}"),
            pause: format!("/{pause}function={name}"),
            is_paused,
        }
    });
    GroupRow {
        count: grouped(group.count),
        function: function(group.target),
        error: error(group.target, group.error_type),
        first_failure: Moment { text: age(group.oldest_first_failure, now), at: group.oldest_first_failure },
        next_due: Moment { text: due(group.next_due, otherwise, now), at: group.next_due },
        last_due: Moment { text: due(last_due, otherwise, now), at: last_due },
        why: group.why.iter().map(why).collect::<Vec<_>>().join(", "),
        actions,
    }
}

fn event_row(event: &WaitingEvent<'_>, now: Timestamp) -> EventRow {
    let due = match event.paused_until {
        Some(until) => Moment { text: format!("paused until {until}"), at: Some(until) },
        None => Moment { text: due(event.due, event.why, now), at: event.due },
    };
    EventRow {
        key: event.key.to_owned(),
        href: format!("/event?id={}", encoded(event.key)),
        function: function(event.target),
        retry: event.retry,
        error: error(event.target, event.error_type),
        first_failure: Moment { text: age(Some(event.first_failure), now), at: Some(event.first_failure) },
        due,
        why: event.why.in_words(),
    }
}

/// When they come back, stacked by function.
fn chart(returns: &Returns<'_>) -> Chart {
    let period = returns.period;
    let names: Vec<String> = returns.functions.iter().map(|it| function(it.target)).collect();
    // The last colour is for all others together.
    let colour = |index: usize| match returns.functions[index].target {
        Some(_) => COLOURS[index],
        None => COLOURS[COLOURS.len() - 1],
    };
    let keys = names.iter().enumerate();
    let keys = keys.map(|(index, name)| Key { symbol: "■", colour: colour(index), label: name.clone() });
    let totals: Vec<u64> = (0..returns.periods()).map(|period| returns.total(period)).collect();
    let begins = |period: usize| durations::text(returns.period * period as u32);
    let most = totals.iter().copied().enumerate().max_by_key(|(period, total)| (*total, usize::MAX - period));
    let (busiest, most) = most.unwrap_or_default();
    let svg = drawn(|root| {
        let end = returns.period.as_secs_f64() * totals.len() as f64;
        let highest = CountAxis::over([most as f64].into_iter(), false);
        let mut chart = frame(root, (TimeAxis::linear(end), highest), "time from now", "")?;
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
        svg,
        table: Some(Table {
            caption: "Events by due time, from now".into(),
            columns: std::iter::once(("from now".to_owned(), from)).chain(columns).collect(),
        }),
    }
}
