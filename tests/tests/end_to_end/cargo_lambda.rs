use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use comeback_tests::{assert_kept, built_command, eventually, pages, scratch};

use crate::world::World;

pub(crate) async fn a_sample_is_rehearsed_with_cargo_lambda_watch(world: &World) {
    const WATCH: (&str, u16) = ("127.0.0.1", 9000);
    let blocks = pages::blocks("docs/simulate.md", "Rehearse locally with cargo lambda watch");
    let [watch, invoke] =
        <[String; 2]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not two: {blocks:#?}"));
    assert!(TcpStream::connect(WATCH).is_err(), "somebody already listens where `cargo lambda watch` will");
    // Its build must not hold up `sam build`, which other trials wait for.
    world.built().await;
    let shell = world.ministack().await.shell();
    let (endpoint, calls) = silent_endpoint();
    let nobody = "http://127.0.0.1:9";
    assert!(watch.contains(nobody), "the page names no endpoint: {watch}");
    let watch = watch.replace(nobody, &endpoint);
    let server = shell.start(&watch, &scratch("watch").join("watch.log")).expect("the server starts");
    eventually("cargo lambda watch to listen", Duration::from_secs(60), async || {
        TcpStream::connect(WATCH).ok()
    })
    .await;
    let invoke =
        invoke.replace("cargo run -q -p comeback --", built_command().to_str().expect("a plain path"));
    let answer = shell.run(&invoke).unwrap_or_else(|error| panic!("{error}\n{}", server.log()));
    let (not_allowed, first_failure) = answer.trim_end().split_once('\n').expect("two answers");
    assert_kept(not_allowed, "events/target-not-allowed.json");
    assert_kept(first_failure, "events/first-failure.json");
    for decision in [r#""reason":"target_not_allowed""#, r#""retry":1,"action":"defer""#] {
        assert!(server.log().contains(decision), "no {decision} in {}", server.log());
    }
    // cargo-lambda's deadline is in 1970.
    assert!(server.log().contains("implausible deadline"), "{}", server.log());
    let calls = calls.lock().expect("no panic while it answers");
    for call in ["AmazonSQS.SendMessageBatch", "AmazonSQS.ChangeMessageVisibilityBatch"] {
        assert!(calls.iter().any(|made| made == call), "no {call} in {calls:?}");
    }
}

/// An endpoint that closes every connection instead of answering, and the operations that were asked of it.
fn silent_endpoint() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = format!("http://{}", listener.local_addr().expect("a bound socket has an address"));
    let calls = Arc::<Mutex<Vec<String>>>::default();
    let noted = calls.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let head =
                BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
            let target = head.filter_map(|line| Some(line.split_once("x-amz-target: ")?.1.to_owned()));
            noted.lock().expect("no panic while it counts").extend(target);
        }
    });
    (endpoint, calls)
}
