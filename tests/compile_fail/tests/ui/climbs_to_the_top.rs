comeback_backoff::ladder! { Sends: 100ms, 300ms }

fn main() {
    let (_, rung) = Sends::start().climb();
    let (_, top) = rung.climb();
    assert_eq!(top.give_up("busy").attempts, 3);
}
