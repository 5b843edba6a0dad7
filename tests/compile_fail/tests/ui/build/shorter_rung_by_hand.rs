use comeback_backoff::{Ladder, Rung, Top};

type Sends = Ladder<Rung<300, Rung<100, Top>>>;

fn main() {
    let (_, _) = Sends::start().climb();
}
