comeback_backoff::ladder! { Sends: 1s, 1000ms }

fn main() {}
