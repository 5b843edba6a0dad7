use std::cell::{Cell, OnceCell};

use comeback_operate::dead::{About, DeadLetters, HIDDEN_FOR, Progress};
use indicatif::HumanCount;

use crate::failure::Failure;
use crate::operate::common::Common;
use crate::operate::session::Session;
use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal;

/// The letters of the deployment, and about how many there are. Says what reading them does to the queue.
pub(crate) async fn open(session: &Session) -> Result<(DeadLetters, About), Failure> {
    let finding = async {
        let letters = DeadLetters::of(&session.account, &session.deployment().await?)?;
        let about = letters.about().await?;
        Ok((letters, about))
    };
    let (letters, about) = session.interrupt.or(finding).await?;
    announce(&letters, about, &session.common);
    Ok((letters, about))
}

/// In JSON, nothing is said.
pub(crate) fn announce(letters: &DeadLetters, about: About, common: &Common) {
    if common.json {
        return;
    }
    let count = counted(about.visible, "letter", "letters");
    let hidden_for = durations::text(HIDDEN_FOR);
    anstream::eprintln!(
        "reading about {count} of {}; nobody else can receive them meanwhile, and if this is killed, for {hidden_for} \
         at most",
        letters.queue().name()
    );
    if about.hidden > 0 {
        anstream::eprintln!(
            "about {} more are hidden by another reader, and cannot be read now",
            HumanCount(about.hidden)
        );
    }
}

/// The bar while letters are read or acted on.
pub(crate) struct Bar {
    length: u64,
    /// Drawn with the first letter.
    bar: OnceCell<terminal::Progress>,
    says_hidden: Cell<bool>,
}

/// Giving back fewer takes no time that is worth a word.
const MANY: u64 = 2_000;

impl Bar {
    pub(crate) fn new(length: u64) -> Self {
        Self { length, bar: OnceCell::new(), says_hidden: Cell::new(true) }
    }

    pub(crate) fn tell(&self, progress: Progress) {
        match progress {
            Progress::Read(letters) | Progress::Done(letters) => {
                let bar = || terminal::Progress::new(self.length, "{pos}/{len} letters");
                self.bar.get_or_init(bar).set(letters);
            }
            Progress::Hidden(letters) => {
                if letters > MANY && self.says_hidden.replace(false) {
                    anstream::eprintln!("giving back {}", counted(letters, "letter", "letters"));
                }
            }
        }
    }
}
