comeback_backoff::ladder! { Sends: 0ms, 100ms }

fn main() {}
