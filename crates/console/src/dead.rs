//! The pages about dead-letters.
//!
//! Reading dead-letters hides them for a while, so a page reads the queue only if the operator requests it. A scan
//! leaves a snapshot, which pages and plans use. The snapshot contains no payloads. Only one action at a time reads the
//! queue.

mod change;
mod dead_letter;
mod edit;
mod files;
mod parts;
pub(super) mod state;

use std::ops::Range;
use std::rc::Rc;

use askama::Template;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::response::Response;
use comeback_operate::dead::filter::{PayloadTest, read_reason, read_retries};
use comeback_operate::dead::{self, Filter, Selection, Snapshot};
use comeback_operate::durations;
use comeback_operate::function::FunctionName;
use comeback_operate::layout::{Fact, Layout, Table};
use comeback_operate::numbers::grouped;
use comeback_operate::text::Text;
use comeback_operate::{Answer as _, CommandName};

use crate::access::token;
use crate::change::Input;
use crate::console::Console;
use crate::dead::change::{DISCARD, REDRIVE};
use crate::dead::edit::{EDIT, LARGEST_EDIT};
use crate::dead::files::{IMPORT, LARGEST_UPLOAD};
use crate::dead::parts::{described, path, selection, snapshot};
use crate::dead::state::scan_id;
use crate::page::{Fields, Frame, Problem, Visit, form, form_that_reads, ok, page, upload};
use crate::performer::perform_in_background;
use crate::response::html;
use crate::work::{ONCE, WorkSummary};

const ON_A_PAGE: usize = 100;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/dead", page(overview))
        .route("/dead/scan", form(scan))
        .route("/dead/each", page(dead_letters))
        .route("/dead/each/{id}", page(dead_letter::show).merge(form(dead_letter::read)))
        .route(EDIT.path, EDIT.route().layer(DefaultBodyLimit::max(LARGEST_EDIT)))
        .route("/dead/export", form(files::export))
        .route("/dead/file", form_that_reads(files::download))
        .route("/dead/upload", upload(files::receive).layer(DefaultBodyLimit::max(LARGEST_UPLOAD)))
        .route(IMPORT.path, IMPORT.route())
        .route(REDRIVE.path, REDRIVE.route())
        .route(DISCARD.path, DISCARD.route())
}

static FILTERS: [Input; 8] = [
    Input::new("reason", "Reason", "Such as max_age"),
    Input::new("target", "Function", "NAME, NAME:ALIAS or ARN"),
    Input::new("error", "Error", "Such as Timeout*"),
    Input::new("older", "Dead-lettered longer ago than", "Such as 7d"),
    Input::new("newer", "Dead-lettered more recently than", "Such as 1h"),
    Input::new("retries", "Retries", ">5, >=5, <5, <=5 or 5"),
    Input::new("key", "Key", "Of this event"),
    Input::new("payload", "Value in the payload", "Such as /customer/id=42"),
];

fn filter(fields: &Fields) -> Result<Filter, String> {
    let [reason, target, error, older, newer, retries, key, payload] = &FILTERS;
    let text = |input: &Input| fields.get(input.name).map(ToOwned::to_owned);
    Ok(Filter {
        reason: reason.read(fields, read_reason)?,
        target: target.read(fields, str::parse::<FunctionName>)?,
        error: text(error),
        older: older.read(fields, durations::read)?,
        newer: newer.read(fields, durations::read)?,
        retries: retries.read(fields, read_retries)?,
        key: text(key),
        payload: payload.read(fields, PayloadTest::read)?.into_iter().collect(),
    })
}

#[derive(Template)]
#[template(path = "dead.html")]
struct DeadPage {
    frame: Frame,
    /// The queue's line in `comeback status`, or the reason why it could not be read.
    queue: Result<Vec<Fact>, Text>,
    under_way: Option<String>,
    filters: Vec<(&'static Input, Vec<String>)>,
    once: String,
    /// Name of the function that the page is limited to; empty if the page shows all functions.
    only_of: String,
    /// The groups of dead-letters that the latest scan found, or `None` before the first scan.
    scanned: Option<Groups>,
    /// The command line that lists the dead-letters that the latest scan found; empty before the first scan.
    command: String,
    files: Vec<String>,
    /// The reason why the form's filter was refused.
    refused: Option<Text>,
}

/// Groups of dead-letters in the newest snapshot.
pub(super) struct Groups {
    pub(super) snapshot: Rc<Snapshot>,
    /// The layout of the groups, with one table.
    pub(super) layout: Layout,
    /// For each row of the table, the number that its group has in the snapshot.
    pub(super) numbers: Vec<usize>,
    /// The reason why the scan is incomplete or could not make the dead-letters visible again; otherwise `None`.
    pub(super) problem: Option<Text>,
}

impl Groups {
    /// Groups the dead-letters that the latest scan found, for one function or for all. `None` before the first scan.
    pub(super) fn in_scan(console: &Console, function: Option<&FunctionName>) -> Option<Self> {
        let (snapshot, now) = (console.dead.snapshot()?, console.now());
        let mut groups = snapshot.groups();
        if let Some(function) = function {
            groups.retain(|(_, group)| group.alike.target.as_ref().is_some_and(|arn| function.names(arn)));
        }
        let (layout, problem) = (snapshot.layout_of(&groups, now), snapshot.end().err());
        let numbers = groups.iter().map(|(number, _)| *number).collect();
        Some(Self { snapshot, layout, numbers, problem: problem.map(|failure| failure.text()) })
    }

    pub(super) fn at(&self) -> Text {
        self.snapshot.at.into()
    }

    pub(super) fn scan(&self) -> String {
        scan_id(&self.snapshot)
    }
}

/// An event's dead-letter from the newest scan, shown on the event's page.
pub(super) struct OfEvent {
    pub(super) at: Text,
    pub(super) scan: String,
    pub(super) id: String,
    pub(super) path: String,
}

/// Shows the groups of dead-letters. The query parameter `target` limits them to one function.
async fn overview(visit: Visit) -> Result<Response, Problem> {
    let target = visit.query().get("target").map(ToOwned::to_owned);
    let function = target.as_deref().map(str::parse::<FunctionName>);
    let function = function.transpose().map_err(Problem::bad_request)?;
    let filled = target.iter().fold(Fields::default(), |fields, target| fields.with("target", target));
    let page = dead_page(&visit, function.as_ref(), &filled, None).await;
    ok(&DeadPage { only_of: target.unwrap_or_default(), ..page })
}

/// Returns the page with the groups of dead-letters and the scan form. `refused` is the reason why the form was
/// refused.
async fn dead_page(
    visit: &Visit,
    function: Option<&FunctionName>,
    filled: &Fields,
    refused: Option<Text>,
) -> DeadPage {
    let dead = &visit.console.dead;
    let status = visit.console.status().await.value;
    let queue = status.map_err(|failure| failure.text()).map(|status| {
        let [_, _, dead_letters] = status.counts();
        vec![dead_letters]
    });
    let scanned = Groups::in_scan(&visit.console, function);
    let snapshot = scanned.as_ref().map(|groups| &*groups.snapshot);
    let frame = visit.frame("Dead-letters", None);
    let command = |snapshot: &Snapshot| visit.console.command(CommandName::DeadList, snapshot.filter.flags());
    DeadPage {
        frame: match snapshot {
            Some(snapshot) => frame.of(snapshot.at),
            None => frame,
        },
        command: snapshot.map(command).unwrap_or_default(),
        queue,
        under_way: dead.under_way(),
        filters: FILTERS.iter().map(|input| (input, input.values(filled))).collect(),
        once: token(),
        only_of: String::new(),
        scanned,
        files: dead.files(),
        refused,
    }
}

impl OfEvent {
    pub(super) fn in_scan(console: &Console, key: &str) -> Option<Self> {
        let snapshot = console.dead.snapshot()?;
        let row = snapshot.dead_letter_of(key)?;
        Some(Self {
            at: snapshot.at.into(),
            scan: scan_id(&snapshot),
            id: row.message_id.to_string(),
            path: path(row),
        })
    }
}

async fn scan(visit: Visit, fields: Fields) -> Result<Response, Problem> {
    let fields = fields.unpacked();
    let [once] = fields.required([ONCE])?;
    // An invalid filter is refused before the scan hides any dead-letters.
    let filter = match filter(&fields) {
        Ok(filter) => filter,
        Err(refused) => {
            let page = dead_page(&visit, None, &fields, Some(refused.into())).await;
            return Ok(html(StatusCode::BAD_REQUEST, &page));
        }
    };
    let words = ["--each".to_owned()].into_iter().chain(filter.flags());
    let summary = WorkSummary {
        command: visit.console.command(CommandName::DeadList, words),
        next: "See them",
        reads_dead_letters: true,
        ..WorkSummary::new("Scan the dead-letters", "/dead", "/dead")
    };
    perform_in_background(&visit.console, once, summary, |performer| async move {
        let dead = &performer.console.dead;
        // The earlier snapshot is dropped first, because two snapshots would take twice the memory.
        dead.set_snapshot(None);
        let snapshot = dead::scan(&performer.operator().await?, filter).await?;
        performer.screen.show(snapshot.layout());
        let end = snapshot.end();
        dead.set_snapshot(Some(snapshot));
        end
    })
}

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct DeadLettersPage {
    frame: Frame,
    scan: String,
    once: String,
    /// The listed group's number; empty if the page lists all groups.
    group: String,
    what: String,
    range: String,
    table: Table,
    /// For each dead-letter in the table, the path of its page, and its message id.
    paths: Vec<(String, String)>,
    earlier: Option<String>,
    later: Option<String>,
}

/// Returns the indexes of the dead-letters on the page that contains `from`, and the first indexes of the previous and
/// the next page, if any.
fn part(from: usize, all: usize) -> (Range<usize>, Option<usize>, Option<usize>) {
    let from = from.min(all.saturating_sub(1)) / ON_A_PAGE * ON_A_PAGE;
    let end = (from + ON_A_PAGE).min(all);
    (from..end, from.checked_sub(ON_A_PAGE), Some(end).filter(|end| *end < all))
}

async fn dead_letters(visit: Visit) -> Result<Response, Problem> {
    let fields = visit.query();
    let (snapshot, selection) = (snapshot(&visit.console)?, selection(&fields)?);
    let group = match selection {
        Selection::Group(number) => Some(number),
        Selection::All | Selection::DeadLetters(_) => None,
    };
    let rows = snapshot.rows(&selection);
    let from = fields.get("from").and_then(|from| from.parse().ok()).unwrap_or(0);
    let (part, earlier, later) = part(from, rows.len());
    let query = group.map(|number| format!("group={number}&")).unwrap_or_default();
    let link = |from: usize| format!("/dead/each?{query}from={from}");
    let range = format!(
        "{} to {} of {}, the oldest first",
        grouped(part.start as u64 + 1),
        grouped(part.end as u64),
        grouped(rows.len() as u64)
    );
    let shown = &rows[part];
    ok(&DeadLettersPage {
        frame: visit.frame("Dead-letters", None).of(snapshot.at),
        scan: scan_id(&snapshot),
        once: token(),
        group: group.map(|number| number.to_string()).unwrap_or_default(),
        what: described(&snapshot, &selection),
        range: if rows.is_empty() { "None is left.".into() } else { range },
        paths: shown.iter().map(|row| (path(row), row.message_id.to_string())).collect(),
        table: snapshot.table(shown, visit.console.now()),
        earlier: earlier.map(link),
        later: later.map(link),
    })
}

#[cfg(test)]
mod tests {
    use comeback_operate::dead::scan::ScanEnd;
    use comeback_operate::dead::testing::{event, malformed};

    use crate::response::encoded;
    use crate::tests::{Setting, locally, scanned, snapshot_of};

    use super::*;

    /// Text from functions is escaped, and payloads are shown only on request.
    #[tokio::test]
    async fn dead_letters_are_text_and_have_no_payload() {
        locally(async {
            let hostile = "a\u{1b}]0;x\u{7}\u{9b}2J\u{202e}<script>alert(1)</script>\"'>";
            let json = serde_json::to_string(hostile).unwrap();
            let mut dead_letters: Vec<_> = (0..150).map(|_| event("Timeout")).chain([malformed()]).collect();
            for text in ["\"why\"", "\"Timeout\"", "\"m\"", &format!("\"{}\"", dead_letters[0].key)] {
                dead_letters[0].body = dead_letters[0].body.replace(text, &json);
            }
            dead_letters[0].body = dead_letters[0].body.replace("function:orders", "function:<b>\u{202e}");
            let snapshot = snapshot_of(dead_letters).await;
            let paths: Vec<_> =
                snapshot.rows(&Selection::All).iter().map(|row| row.message_id.clone()).collect();
            let group = snapshot.groups()[0].0;
            let setting = Setting::new(false).await;
            setting.console.dead.set_snapshot(Some(snapshot));
            let addresses = ["/dead/each".to_owned(), "/dead/each?from=100".into()];
            let addresses = addresses.into_iter().chain(paths.iter().map(|id| format!("/dead/each/{id}")));
            let mut all = String::new();
            for address in addresses {
                let (status, text) = setting.answer(setting.page(&address)).await;
                assert_eq!(status, StatusCode::OK, "{address}");
                all += &text;
            }
            for never in ["<script>alert", "<b>", "\u{202e}", "\u{9b}", "1E400"] {
                assert!(!all.contains(never), "{never:?}");
            }
            assert!(all.contains("&#60;script&#62;alert(1)") && all.contains("\\u{202e}"));
            let (_, page) = setting.answer(setting.page(&format!("/dead/each?group={group}&from=100"))).await;
            assert!(page.contains("101 to 149 of 149, the oldest first"), "{page}");
            for missing in ["/dead/each/none", "/dead/each?group=x", "/dead/redrive?group=1&dead_letter=2"] {
                assert_eq!(setting.answer(setting.page(missing)).await.0, StatusCode::NOT_FOUND, "{missing}");
            }
        })
        .await;
    }

    #[tokio::test]
    async fn dead_letters_of_one_function_are_a_page() {
        locally(async {
            let setting = Setting::new(false).await;
            let (_, page) = setting.answer(setting.page("/dead?target=orders")).await;
            assert!(page.contains("A scan lists the dead-letters of orders here"), "{page}");
            let field = "<input id=\"target\" name=\"target\" value=\"orders\"";
            assert!(
                page.contains("<details open>") && page.contains(field),
                "the scan reads only those: {page}"
            );
            let mut other = event("Timeout");
            other.body = other.body.replace("function:orders", "function:billing");
            setting.console.dead.set_snapshot(Some(snapshot_of([event("Timeout"), other]).await));
            let (_, page) = setting.answer(setting.page("/dead?target=orders")).await;
            assert!(page.contains("function orders ×") && !page.contains("billing"), "{page}");
            assert!(page.contains("1 of about 2 dead-letters"), "{page}");
            assert!(!page.contains("All of them"), "no button acts on others: {page}");
            let (_, page) = setting.answer(setting.page("/dead?target=none")).await;
            assert!(page.contains("0 of about 2 dead-letters"), "{page}");
            let (status, _) = setting.answer(setting.page("/dead?target=a%20b")).await;
            assert_eq!(status, StatusCode::BAD_REQUEST);
        })
        .await;
    }

    #[tokio::test]
    async fn scan_page_says_what_the_scan_left_out() {
        locally(async {
            let setting = Setting::new(false).await;
            let mut snapshot = snapshot_of([event("Timeout")]).await;
            snapshot.filter.error = Some("Time*".into());
            snapshot.read.end = ScanEnd::TooManyHidden;
            setting.console.dead.set_snapshot(Some(snapshot));
            let (_, page) = setting.answer(setting.page("/dead")).await;
            assert!(page.contains("<code>&#39;--error=Time*&#39;</code>"), "{page}");
            assert!(page.contains("SQS allows about 120000 at once"), "{page}");
        })
        .await;
    }

    #[tokio::test]
    async fn nothing_reads_or_changes_without_a_form() {
        locally(async {
            let setting = Setting::new(true).await;
            for path in ["/dead/scan", "/dead/export", "/dead/file", "/dead/upload"] {
                let refused = setting.answer(setting.page(path)).await.0;
                assert_eq!(refused, StatusCode::METHOD_NOT_ALLOWED, "{path}");
            }
            setting.console.dead.set_snapshot(Some(snapshot_of([]).await));
            for path in ["/dead/redrive", "/dead/discard", "/dead/import?file=imported-1.jsonl"] {
                let (status, text) = setting.answer(setting.page(path)).await;
                assert!(status == StatusCode::FORBIDDEN && text.contains("read-only"), "{path}: {text}");
            }
            for path in ["/dead/scan", "/dead/export", "/dead/each/m-1"] {
                let form = setting.form_of(path, "once=2&show=details");
                assert_eq!(setting.answer(form).await.0, StatusCode::FORBIDDEN, "{path} hides dead-letters");
            }
        })
        .await;
    }

    /// A second reader would hide the dead-letters from the first reader.
    #[tokio::test]
    async fn only_one_action_reads_the_queue() {
        locally(async {
            let (_, setting, fields, _) = scanned(false).await;
            let turn = setting.console.dead.turn("/progress/1").unwrap();
            let planned = encoded(&format!("{fields}&payload=1&file=imported-1.jsonl"));
            let form = format!("once=2&show=details&digest=0&typed=1&{fields}&fields={planned}");
            let refused = async |paths: &[&str], form: &str| {
                for path in paths {
                    let (status, page) = setting.answer(setting.form_of(path, form)).await;
                    assert_eq!(status, StatusCode::CONFLICT, "{path}");
                    // Reloading this page would send the form again.
                    assert!(page.contains("Another action") && !page.contains("data-refresh"), "{page}");
                }
            };
            let of_scan = ["/dead/export", "/dead/redrive", "/dead/discard", "/dead/edit"];
            refused(&["/dead/scan"], "once=2").await;
            refused(&["/dead/each/m-1", "/dead/import"], &form).await;
            refused(&of_scan, &form).await;
            // A scan drops the earlier snapshot when it begins.
            setting.console.dead.set_snapshot(None);
            refused(&of_scan, &form).await;
            assert!(setting.answer(setting.page("/none")).await.1.contains("data-refresh"));
            assert!(!include_str!("../templates/script.js").contains(".reload("), "it sends forms again");
            drop(turn);
            assert!(setting.console.dead.turn("").is_some());
        })
        .await;
    }

    #[test]
    fn a_page_has_a_hundred_dead_letters() {
        assert_eq!(part(0, 0), (0..0, None, None));
        assert_eq!(part(0, 100), (0..100, None, None));
        assert_eq!(part(0, 101), (0..100, None, Some(100)));
        assert_eq!(part(150, 250), (100..200, Some(0), Some(200)));
        assert_eq!(part(9_999, 250), (200..250, Some(100), None));
    }

    #[test]
    fn each_filter_is_a_flag_of_the_command() {
        let values = ["max_age", "orders:live", "--all", "7d", "1h", ">=6", "k 1", "/id=a=b"];
        let fields = FILTERS.iter().zip(values).map(|(input, value)| (input.name.into(), value.into()));
        let flags = FILTERS.iter().zip(values).map(|(input, value)| format!("--{}={value}", input.name));
        assert_eq!(filter(&Fields(fields.collect())).unwrap().flags(), flags.collect::<Vec<_>>());
        assert!(filter(&Fields(vec![("key".into(), String::new())])).unwrap().takes_everything());
        for Input { name, label, .. } in FILTERS.iter().filter(|it| !["error", "key"].contains(&it.name)) {
            let refused = filter(&Fields(vec![((*name).into(), "no such thing".into())])).unwrap_err();
            assert!(refused.starts_with(&format!("{label}: ")), "{refused}");
        }
    }
}
