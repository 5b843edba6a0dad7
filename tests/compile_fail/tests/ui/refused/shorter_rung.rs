comeback_backoff::ladder! { Sends: 100ms, 300ms, 200ms }

fn main() {}
