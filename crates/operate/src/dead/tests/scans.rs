use super::letters::{self, NOW, Put};
use super::simulated::Simulated;
use crate::dead::survey::{find, survey};
use crate::dead::{End, Filter, Survey};
use crate::{Failure, Interrupt};

const EVERYTHING: fn() -> Filter = Filter::default;

fn with(letters: impl IntoIterator<Item = Put>) -> Simulated {
    let simulated = Simulated::new(7);
    letters.into_iter().for_each(|letter| drop(simulated.put(&letter)));
    simulated
}

async fn list(simulated: &Simulated, most: usize) -> Result<Survey, Failure> {
    let (_raise, interrupt) = Interrupt::new();
    survey(simulated, &EVERYTHING(), &|_| Ok(()), most, NOW, &interrupt, &|_| ()).await
}

#[tokio::test(start_paused = true)]
async fn letters_are_counted_by_group_and_given_back() {
    let timeouts = (0..250).map(|_| letters::event("Timeout"));
    let others = (0..3).map(|_| letters::record("Throttled"));
    let simulated = with(timeouts.chain(others).chain([letters::unknown(), letters::malformed()]));
    let survey = list(&simulated, 2).await.unwrap();
    let groups = survey.groups.iter().map(|it| (it.count, it.reason.as_str(), it.error_type.as_deref()));
    let expected = [
        (250, "max_age", Some("Timeout")),
        (3, "max_receive_count", Some("Throttled")),
        (1, "malformed_record", None),
        (1, "unknown", None),
    ];
    assert_eq!(groups.collect::<Vec<_>>(), expected);
    assert_eq!((survey.chosen, survey.letters.len()), (255, 2));
    assert_eq!((survey.read.letters, &survey.read.end), (255, &End::All));
    assert_eq!(simulated.depth().visible, 255);
}

#[tokio::test(start_paused = true)]
async fn letters_that_come_later_are_left_alone() {
    let simulated = with([letters::event("Timeout"), letters::event("Timeout")]);
    let (_raise, interrupt) = Interrupt::new();
    let first = simulated.dead()[0].record.sent;
    let survey = survey(&simulated, &EVERYTHING(), &|_| Ok(()), 0, first, &interrupt, &|_| ()).await.unwrap();
    assert_eq!((survey.chosen, survey.read.letters, survey.read.newer), (1, 1, 1));
    assert_eq!((survey.newest, simulated.depth().visible), (Some(first), 2));
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_gives_back_what_was_read() {
    let simulated = with((0..500).map(|_| letters::event("Timeout")));
    let (raise, interrupt) = Interrupt::new();
    let tell = |_| raise.send(true).unwrap();
    let survey = survey(&simulated, &EVERYTHING(), &|_| Ok(()), 0, NOW, &interrupt, &tell).await.unwrap();
    assert_eq!((survey.read.letters, &survey.read.end), (80, &End::Interrupted));
    assert_eq!(simulated.depth().visible, 500);
    let failure = survey.read.result("nothing was changed").unwrap_err();
    assert_eq!(failure, Failure::Interrupted("nothing was changed".into()));
}

#[tokio::test(start_paused = true)]
async fn a_denied_receive_is_the_commands_failure() {
    let simulated = with([letters::event("Timeout")]);
    simulated.denied.set("receive");
    let failure = list(&simulated, 0).await.unwrap_err();
    assert_eq!(failure, Failure::CouldNot("sqs:ReceiveMessage: AccessDenied".into()));
}

#[tokio::test(start_paused = true)]
async fn letters_that_cannot_be_given_back_are_reported() {
    let simulated = with((0..30).map(|_| letters::event("Timeout")));
    simulated.denied.set("give_back");
    let read = list(&simulated, 0).await.unwrap().read;
    let why = "sqs:ChangeMessageVisibility: refused: AccessDenied: give_back; docs/operate.md lists the permissions of \
        each command";
    assert_eq!(read.still_hidden, Some((30, why.into())));
    let undone =
        format!("read 30; 30 letters could not be given back and are hidden for 15 minutes at most: {why}");
    assert_eq!(read.result("read 30"), Err(Failure::Undone(undone)));
    assert_eq!(simulated.depth().in_flight, 30);
}

#[tokio::test(start_paused = true)]
async fn a_letter_is_found_by_its_key_or_its_messages_id() {
    let letters: Vec<_> = (0..200).map(|_| letters::event("Timeout")).collect();
    let simulated = with(letters.clone());
    let id = simulated.put(&letters::unknown());
    let (_raise, interrupt) = Interrupt::new();
    let find = async |key: &str| find(&simulated, key, NOW, &interrupt, &|_| ()).await.unwrap();
    let (whole, read) = find(&letters[150].key).await;
    let whole = whole.expect("it is there");
    let expected = format!(r#"{{"n":1E400,"id":"{}"}}"#, letters[150].key);
    assert_eq!(whole.payload.as_ref().map(|raw| raw.get()), Some(expected.as_str()));
    assert_eq!((whole.body, whole.error_message.as_deref(), read.end), (None, Some("m"), End::Enough));
    let (unknown, _) = find(&id).await;
    let unknown = unknown.expect("it is there");
    assert_eq!((unknown.described.kind, unknown.described.key), ("unknown", None));
    assert!(unknown.body.expect("no event was found").starts_with("hello"));
    let (nothing, read) = find("no key").await;
    assert_eq!((nothing.is_none(), read.end, read.letters), (true, End::All, 201));
    assert_eq!(simulated.depth().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_whole_letter_is_one_json_object_with_its_payload_verbatim() {
    let letter = letters::event("Timeout");
    let simulated = with([letter.clone()]);
    let (_raise, interrupt) = Interrupt::new();
    let (whole, _) = find(&simulated, &letter.key, NOW, &interrupt, &|_| ()).await.unwrap();
    let json = serde_json::to_string(&whole.unwrap()).unwrap();
    let begins = format!(r#"{{"key":"{}","message_id":"#, letter.key);
    assert!(json.starts_with(&begins), "{json}");
    assert!(json.contains(&format!(r#""payload":{{"n":1E400,"id":"{}"}},"#, letter.key)), "{json}");
    assert!(json.contains(r#""first_failure":"2001-09-08T23:00:00.000Z""#), "{json}");
}
