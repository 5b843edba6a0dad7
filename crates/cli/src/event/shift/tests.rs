use super::*;

const MOMENT: Timestamp = Timestamp::from_millis(1_789_400_900_250);

fn shift(text: &str, now: Timestamp) -> String {
    shifted(Path::new("event.json"), text, MOMENT, now).unwrap()
}

#[test]
fn every_time_moves_by_the_same_whole_seconds() {
    let record = r#"{ "timestamp":"2026-09-14T15:46:54.145Z", "requestPayload": {"_retry_metadata":{"attempt":2, "initial_timestamp": 1789400000}, "_original_payload": {"n": 1.0, "é": "\u00e9" }} }"#;
    let event = |body: &str, sent: u64, first: u64| {
        let body = serde_json::to_string(body).unwrap();
        format!(
            "{{\"Records\": [ {{\"body\": {body},\n \"attributes\": {{\"SentTimestamp\": \"{sent}\", \"ApproximateFirstReceiveTimestamp\" : \"{first}\"}}}}]}}\n"
        )
    };
    let before = event(record, 1_789_400_814_145, 1_789_400_814_200);
    let later = Timestamp::from_millis(MOMENT.as_millis() + 86_400_000 + 999);
    let moved = record.replace("2026-09-14", "2026-09-15").replace("1789400000", "1789486400");
    assert_eq!(shift(&before, later), event(&moved, 1_789_487_214_145, 1_789_487_214_200));
    let earlier = Timestamp::from_millis(MOMENT.as_millis() - 1);
    let moved = record.replace("54.145", "53.145").replace("1789400000", "1789399999");
    assert_eq!(shift(&before, earlier), event(&moved, 1_789_400_813_145, 1_789_400_813_200));
}

#[test]
fn what_has_no_times_stays_as_it_is() {
    for body in ["not json", "[1]", r#"{"timestamp": 7, "requestPayload": {"_retry_metadata": null}}"#] {
        let body = serde_json::to_string(body).unwrap();
        let event = format!(r#"{{"Records":[{{"body":{body},"attributes":{{"SentTimestamp":"soon"}}}}]}}"#);
        assert_eq!(shift(&event, Timestamp::from_secs(0)), event);
    }
}

#[test]
fn what_a_moved_message_carries_is_shifted_too() {
    let event = |carried: &str| {
        let carried = serde_json::to_string(carried).unwrap();
        format!(r#"{{"Records":[{{"messageAttributes":{{"Comeback":{{"stringValue":{carried}}}}}}}]}}"#)
    };
    let now = Timestamp::from_millis(MOMENT.as_millis() + 5_000);
    let carried = |last| {
        format!(
            r#"{{"message_id":"1789400000001", "sent": 1789400000001, "first_receive":1789400000002,"receives":7{last}}}"#
        )
    };
    let later =
        |last| carried(last).replace(": 1789400000", ": 1789400005").replace(":1789400000", ":1789400005");
    assert_eq!(shift(&event(&carried("")), now), event(&later("")));
    let held = r#","not_before":1789400000003"#;
    assert_eq!(shift(&event(&carried(held)), now), event(&later(held)));
    for unreadable in ["", r#"{"sent":17894"#, r#"{"sent":"1789400000001"}"#] {
        assert_eq!(shift(&event(unreadable), now), event(unreadable));
    }
}

#[test]
fn a_dead_letter_is_shifted_too() {
    let event =
        r#"{"Records":[{"body":"{\"initial_timestamp\":1789400000,\"dead_lettered_at\":1789400001}"}]}"#;
    let now = Timestamp::from_millis(MOMENT.as_millis() + 5_000);
    assert_eq!(
        shift(event, now),
        event.replace("1789400000", "1789400005").replace("1789400001", "1789400006")
    );
}
