use comeback_delivery::Retries;

use crate::apis::{Api, config};
use crate::service::{Answer, Service};

crate::for_every_api!(
    a_call_is_one_request_though_the_client_would_retry,
    senders_share_the_connections_of_their_client,
);

async fn a_call_is_one_request_though_the_client_would_retry<A: Api>() {
    for answer in [Answer::Error(500, "InternalFailure"), Answer::Error(400, "ThrottlingException")] {
        let service = Service::start(move |_| answer.clone()).await;
        let undelivered = A::sender(&service).retries(Retries::none()).send(A::entries(1)).await.unwrap_err();
        assert_eq!((undelivered.calls, service.log().calls.len()), (1, 1));
    }
}

/// With the SDK's default HTTP client: one that the user sets is shared even by clients made anew.
async fn senders_share_the_connections_of_their_client<A: Api>() {
    let service = Service::obliging().await;
    let mut config = config(&service).into_builder();
    config.set_http_client(None);
    let client = A::client(&config.build());
    for _ in 0..3 {
        A::over(client.clone()).send(A::entries(1)).await.unwrap();
    }
    let log = service.log();
    assert_eq!((log.calls.len(), log.connections), (3, 1));
}
