comeback_backoff::ladder! { Sends: 100, 200 }

fn main() {}
