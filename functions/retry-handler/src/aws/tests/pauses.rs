//! Reads of the parameter that holds the pauses.

use super::*;

async fn read(
    status: u16,
    error: &'static str,
    body: Value,
) -> (Result<Option<String>, CallFailure>, Vec<Request>) {
    let (aws, requests) = answering(status, error, &body);
    let answer = account(&aws).read_pauses().await;
    let requests = requests.lock().unwrap().clone();
    (answer, requests)
}

#[tokio::test(start_paused = true)]
async fn a_read_asks_for_the_parameter_and_gives_its_text() {
    let text = r#"{"v":1,"pauses":[]}"#;
    let (answer, requests) = read(200, "", json!({"Parameter": {"Type": "String", "Value": text}})).await;
    assert_eq!(answer, Ok(Some(text.into())));
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(request.operation, "AmazonSSM.GetParameter");
    assert_eq!(request.body, format!(r#"{{"Name":"{PAUSES}"}}"#));
}

#[tokio::test(start_paused = true)]
async fn a_parameter_that_does_not_exist_is_no_failure() {
    assert_eq!(read(400, "ParameterNotFound", json!({})).await.0, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_not_repeated_and_names_what_an_operator_can_do() {
    for (status, error, remedy) in [
        (400, "AccessDeniedException", Some("allow ssm:GetParameter on the parameter that PAUSES names")),
        (400, "ExpiredTokenException", Some("credentials are not valid")),
        (400, "UnrecognizedClientException", Some("credentials are not valid")),
        (400, "ThrottlingException", None),
        (400, "ValidationException", None),
        (500, "InternalServerError", None),
    ] {
        let (answer, requests) = read(status, error, json!({"message": "no"})).await;
        let failure = answer.unwrap_err();
        assert_eq!(failure.cause, format!("{error}: no"));
        assert_eq!(failure.remedy.is_some(), remedy.is_some(), "{error}: {failure:?}");
        assert!(failure.remedy.unwrap_or_default().contains(remedy.unwrap_or_default()), "{failure:?}");
        assert_eq!(requests.len(), 1, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_text_or_in_time_is_a_failure() {
    let nothing = read(200, "", json!({"Parameter": {"Type": "String"}})).await.0.unwrap_err();
    assert_eq!(nothing.cause, "the parameter that PAUSES names has no value");
    let start = Instant::now();
    let late = account(&never()).read_pauses().await.unwrap_err();
    assert_eq!((start.elapsed(), late.remedy), (PAUSES_TIMEOUT, None), "{}", late.cause);
}

#[tokio::test(start_paused = true)]
async fn without_a_parameter_nothing_is_asked() {
    let (aws, requests) = answering(400, "AccessDeniedException", &json!({}));
    let aws = Aws { pauses: None, ..aws };
    assert_eq!(account(&aws).read_pauses().await, Ok(None));
    assert!(requests.lock().unwrap().is_empty());
}
