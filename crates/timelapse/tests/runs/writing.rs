//! Operators who write given values to the pauses parameter, and do nothing else.

use std::collections::VecDeque;
use std::time::Duration;

use comeback_timelapse::{MakeOperators, START};

/// Returns operators who write each text to the pauses parameter at the given time after the run's start.
pub(super) fn writing(texts: Vec<(Duration, String)>) -> MakeOperators {
    MakeOperators::new(move |deployment| {
        let mut left: VecDeque<_> = texts.clone().into();
        Box::new(move || {
            loop {
                let at = START.saturating_add(left.front()?.0);
                if at > deployment.now() {
                    return Some(at);
                }
                let (_, text) = left.pop_front()?;
                deployment.write_pauses(&text);
            }
        })
    })
}
