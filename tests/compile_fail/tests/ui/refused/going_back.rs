comeback_backoff::ladder! { Sends: 100ms, 300ms, 1s }

fn main() {
    let first = Sends::start();
    let (_, mut second) = first.climb();
    let (_, third) = second.climb();
    second = third;
    second.climb();
}
