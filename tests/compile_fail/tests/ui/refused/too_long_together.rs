comeback_backoff::ladder! { Sends: 1h, 18446744073709551615ms }

fn main() {}
