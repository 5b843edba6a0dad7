comeback_backoff::ladder! { Sends: 100ms, 300ms }

fn main() {
    let (_, rung) = Sends::start().climb();
    let (_, top) = rung.climb();
    let (_, _) = top.climb();
}
