//! Tests of a sender that calls a scripted service, and of the traces that the sender writes.

mod batches;
mod ending;
mod metered;
mod outcomes;
mod retrying;
mod service;
mod streams;
mod throttling;

use std::io;
use std::sync::{Arc, Mutex, Once};

use comeback_delivery::{ErrorKind, Retries};
use tracing_subscriber::fmt::format::FmtSpan;

use crate::service::{Fate, Service, complete, entries};

fn traced(work: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no test panics while it writes").extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // The first thread that reaches a span decides for all threads whether the span is recorded. This thread may belong
    // to another test, so every thread has a subscriber.
    static EVERYWHERE: Once = Once::new();
    EVERYWHERE.call_once(|| {
        let all = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(io::sink);
        tracing::subscriber::set_global_default(all.finish()).expect("no other test sets one");
    });
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, work);
    let lines = lines.0.lock().expect("no test panics while it writes").clone();
    String::from_utf8(lines).expect("traces are text")
}

#[test]
fn spans_hold_codes_and_no_message() {
    let service = Service::new([
        Fate::Whole(ErrorKind::Throttled),
        Fate::Ok,
        Fate::Ok,
        Fate::Error(ErrorKind::Refused),
    ]);
    let sender = service.sender().retries(Retries::of([std::time::Duration::ZERO]));
    let traced = traced(|| drop(complete(sender.send(entries([None; 3])))));
    let call = "deliver{entries=3}:call{entries=3}: comeback_delivery::run: ";
    assert!(traced.contains(&format!("{call}failed whole kind=Throttled code=\"Code\"")), "{traced}");
    assert!(traced.contains(&format!("{call}answered done=")), "{traced}");
    assert_eq!(traced.matches(&format!("{call}close")).count(), 2, "{traced}");
    assert_eq!(
        traced.matches("deliver{entries=3}: comeback_delivery::delivery: close").count(),
        1,
        "{traced}"
    );
    assert!(!traced.contains("message"), "a service's message may quote an entry: {traced}");
}
