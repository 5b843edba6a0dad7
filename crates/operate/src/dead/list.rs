//! Lists dead-letters: counts by group, and the first dead-letters individually.

use comeback_engine::Timestamp;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::change::Answer;
use crate::dead::filter::Filter;
use crate::dead::groups::{Described, Group, dead_letters_table, groups_table};
use crate::dead::scan::counted_dead_letters;
use crate::dead::snapshot::Snapshot;
use crate::failure::Failure;
use crate::layout::Layout;
use crate::numbers::{counted, grouped};
use crate::operator::Operator;

/// Counts the dead-letters that match a filter, and describes up to `most` of them.
///
/// # Errors
///
/// Fails if the deployment or its dead-letter queue cannot be read.
pub async fn list(operator: &Operator, filter: Filter, most: usize) -> Result<Snapshot, Failure> {
    Snapshot::take(operator, &operator.deployment().await?, filter, None, most).await
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { read, described, .. } = self;
        let groups: Vec<Group> = self.groups().into_iter().map(|(_, group)| group).collect();
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("chosen", &groups.iter().map(|group| group.count).sum::<u64>())?;
        members.serialize_entry("read", &read.dead_letters)?;
        members.serialize_entry("newer", &read.newer)?;
        members.serialize_entry("locked", &read.locked)?;
        members.serialize_entry("incomplete", &read.incomplete())?;
        members.serialize_entry("groups", &groups)?;
        members.serialize_entry("dead_letters", described)?;
        members.end()
    }
}

impl Answer for Snapshot {
    fn layout(&self) -> Layout {
        self.layout_of(&self.groups(), self.at)
    }

    fn end(&self) -> Result<(), Failure> {
        self.read.result(&format!("read {}", counted_dead_letters(self.read.dead_letters)))?;
        self.unknown_target().map(drop)
    }
}

impl Snapshot {
    /// The layout for some of the [groups](Self::groups), with durations as of `now`.
    pub fn layout_of(&self, groups: &[(usize, Group)], now: Timestamp) -> Layout {
        let Self { read, described, deployment, .. } = self;
        let mut layout = Layout::default();
        let chosen: u64 = groups.iter().map(|(_, group)| group.count).sum();
        let all = read.dead_letters + read.locked.map_or(0, |locked| locked.dead_letters);
        layout.line(match all {
            0 => "no dead-letters".to_owned(),
            _ => format!("{} of about {}", grouped(chosen), counted_dead_letters(all)),
        });
        if chosen > 0 {
            layout.table(groups_table(groups.iter().map(|(_, group)| group), deployment, now));
        }
        let shown = described.len() as u64;
        if shown > 0 {
            layout.table(dead_letters_table(described.iter().map(Described::line), deployment, now));
        }
        if shown > 0 && shown < chosen {
            layout.line(format!("{shown} shown; --limit {chosen} shows all"));
        }
        if read.newer > 0 {
            let (one, more) = (
                "dead-letter that arrived during the scan is",
                "dead-letters that arrived during the scan are",
            );
            layout.line(format!("{} not included", counted(read.newer, one, more)));
        }
        self.unknown_target().ok().flatten().iter().for_each(|note| layout.note(note));
        layout
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::RETENTION;

    use super::*;
    use crate::aws::{AttributeValue, NewMessage};
    use crate::change::tests::plain;
    use crate::dead::testing::{Dead, SampleDeadLetter, event, malformed, record, unknown};
    use crate::layout::Block;

    #[tokio::test]
    async fn dead_letters_are_counted_by_group_and_given_back() {
        let timeouts = (0..250).map(|_| event("Timeout"));
        let others = (0..3).map(|_| record("Throttled"));
        let dead = Dead::with(timeouts.chain(others).chain([unknown(), malformed()]));
        let listing = list(&dead.operator(), Filter::default(), 2).await.unwrap();
        let json = serde_json::to_value(&listing).unwrap();
        let groups = json["groups"].as_array().unwrap().iter();
        let groups: Vec<_> = groups
            .map(|it| {
                (it["count"].as_u64().unwrap(), it["reason"].as_str().unwrap(), it["error_type"].as_str())
            })
            .collect();
        let expected = [
            (250, "max_age", Some("Timeout")),
            (3, "max_receive_count", Some("Throttled")),
            (1, "malformed_record", None),
            (1, "unknown", None),
        ];
        assert_eq!(groups, expected);
        assert_eq!((&json["chosen"], &json["read"], &json["newer"]), (&255.into(), &255.into(), &0.into()));
        assert_eq!(json["dead_letters"].as_array().unwrap().len(), 2);
        assert_eq!((dead.depth().visible, listing.end()), (255, Ok(())));
        let text = plain(&listing);
        assert!(text.starts_with("255 of about 255 dead-letters\n"), "{text}");
        assert!(text.ends_with("2 shown; --limit 255 shows all\n"), "{text}");
    }

    #[tokio::test]
    async fn an_empty_queue_has_no_dead_letters() {
        let listed = async |dead_letters: Vec<SampleDeadLetter>, filter: Filter| {
            plain(&list(&Dead::with(dead_letters).operator(), filter, 0).await.unwrap())
        };
        assert_eq!(listed(Vec::new(), Filter::default()).await, "no dead-letters\n");
        let other = Filter { error: Some("Other".into()), ..Filter::default() };
        assert_eq!(listed(vec![event("Timeout")], other).await, "0 of about 1 dead-letter\n");
    }

    #[tokio::test]
    async fn some_groups_have_a_layout_of_their_own() {
        let dead = Dead::with([event("Timeout"), event("Timeout"), malformed()]);
        let mut snapshot = list(&dead.operator(), Filter::default(), 0).await.unwrap();
        snapshot.read.newer = 1;
        let (some, later) = (&snapshot.groups()[1..], snapshot.at.saturating_add(RETENTION));
        let Layout(blocks) = snapshot.layout_of(some, later);
        let [Block::Line(first), Block::Table(table), Block::Line(last)] = &*blocks else {
            panic!("{blocks:?}")
        };
        assert_eq!(first.to_string(), "1 of about 3 dead-letters");
        assert_eq!(table.rows[0].last().map(ToString::to_string).as_deref(), Some("now"), "SQS deletes it");
        assert_eq!(last.to_string(), "1 dead-letter that arrived during the scan is not included");
    }

    #[tokio::test]
    async fn a_key_is_never_broken_and_an_error_is_cut() {
        let event = event("Timeout");
        let long = format!("{}-{}", event.key, "k".repeat(200));
        let message = format!("\"{}\\n{}\"", "m".repeat(50), "n".repeat(50));
        let body = event.body.replace("Timeout", &"t".repeat(300)).replace(&event.key, &long);
        let dead = Dead::with([SampleDeadLetter { body: body.replace("\"m\"", &message), ..event }]);
        let text = plain(&list(&dead.operator(), Filter::default(), 1).await.unwrap());
        assert!(text.lines().any(|line| line.starts_with(&format!("{long} | "))), "{text}");
        assert!(text.contains(&format!("{}… |", "t".repeat(256))), "{text}");
        assert_eq!(text.matches(&format!("| {}… |", "m".repeat(40))).count(), 2, "{text}");
    }

    #[tokio::test]
    async fn malformed_dead_letters_are_grouped_by_problem() {
        let lost = "it has no requestPayload";
        let json = |column| format!("not JSON at line 1 column {column}");
        let dead = Dead::with([]);
        for detail in [lost.to_owned(), json(7), lost.to_owned(), json(812)] {
            let text = |text: &str| AttributeValue { data_type: "String".into(), value: text.into() };
            let attributes = [("Reason".into(), text("malformed_record")), ("Detail".into(), text(&detail))];
            let message =
                NewMessage { body: malformed().body, attributes: attributes.into(), trace_header: None };
            let (now, queue) = (dead.aws.time(), crate::aws::simulated::Sample::DEAD_LETTER_QUEUE);
            dead.aws.queue(queue).send(now, std::time::Duration::ZERO, message);
        }
        let listing = list(&dead.operator(), Filter::default(), 10).await.unwrap();
        let groups = listing.groups();
        let groups = groups.iter().map(|(_, group)| (group.count, &group.alike));
        let groups =
            groups.map(|(count, alike)| (count, alike.error_message.as_deref(), alike.detail.as_deref()));
        assert_eq!(groups.collect::<Vec<_>>(), [(2, None, Some(lost)), (2, None, Some("not JSON"))]);
        let text = plain(&listing);
        assert!(text.contains(lost) && text.contains("| not JSON |"), "{text}");
    }

    #[tokio::test]
    async fn an_unknown_function_ends_the_command() {
        let dead = Dead::with([event("Timeout")]);
        let unknown = Filter { target: Some("ordres".parse().unwrap()), ..Filter::default() };
        let listing = list(&dead.operator(), unknown, 1).await.unwrap();
        let failure = listing.end().unwrap_err();
        assert!(failure.to_string().starts_with("--target ordres: no dead-letter belongs to this function"));
        assert_eq!((failure.exit_code(), &*plain(&listing)), (3, "0 of about 1 dead-letter\n"));
    }
}
