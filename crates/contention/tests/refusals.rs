//! What is no study is refused, with the reason.

use comeback_contention::{Point, Strategy, Study};

fn refusal(points: &[(u32, Strategy, u32)]) -> String {
    let points = points.iter().map(|&(clients, strategy, runs)| Point { clients, strategy, runs }).collect();
    Study::new(points, 1, false).expect_err("no study").to_string()
}

#[test]
fn refuses_what_cannot_be_run() {
    use Strategy::{Full, None};
    assert_eq!(refusal(&[]), "nothing to run: name at least one number of clients and one strategy");
    assert_eq!(refusal(&[(0, Full, 1)]), "0 clients: must be 1 to 100000");
    assert_eq!(refusal(&[(100_001, Full, 1)]), "100001 clients: must be 1 to 100000");
    assert_eq!(refusal(&[(10, Full, 0)]), "0 runs: must be at least 1");
    assert_eq!(
        refusal(&[(10, None, 1), (10_001, None, 1)]),
        "10001 clients with strategy none: must be at most 10000, because without backoff the calls grow \
         with the square of the clients"
    );
    assert_eq!(
        refusal(&[(10, Full, 1), (10, None, 1), (10, Full, 2)]),
        "10 clients with strategy full are named twice"
    );
}

#[test]
fn takes_the_limits_themselves() {
    let point = |clients, strategy| Point { clients, strategy, runs: 1 };
    Study::new(vec![point(100_000, Strategy::Full), point(10_000, Strategy::None)], 1, false)
        .expect("a valid study");
}
