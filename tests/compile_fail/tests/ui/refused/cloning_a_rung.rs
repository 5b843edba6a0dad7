comeback_backoff::ladder! { Sends: 100ms, 300ms }

fn main() {
    let rung = Sends::start();
    let (_, _) = rung.clone().climb();
}
