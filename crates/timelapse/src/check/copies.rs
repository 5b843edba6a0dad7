//! How often each message was re-invoked or dead-lettered, and what explains more than once.

use std::collections::HashMap;

use crate::aws::id::Id;

/// Counts the messages that a fault has excused. For all others, a flag on the message is enough.
#[derive(Debug, Default)]
pub(crate) struct Copies(HashMap<Id, Excused>);

#[derive(Debug, Default)]
struct Excused {
    made: u32,
    excuses: u32,
}

/// The message was re-invoked or dead-lettered before, and nothing explains a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unexplained;

impl Copies {
    /// A fault explains one more copy of a message.
    pub(crate) fn excuse(&mut self, message: Id, settled: bool) {
        let excused = self.0.entry(message).or_insert(Excused { made: u32::from(settled), excuses: 0 });
        excused.excuses += 1;
    }

    /// A message is re-invoked or dead-lettered. `settled` is its flag, or `None` if another receiver has
    /// taken it out of the queue meanwhile. Gives whether this is a duplicate.
    pub(crate) fn settle(&mut self, message: Id, settled: Option<&mut bool>) -> Result<bool, Unexplained> {
        match (self.0.get_mut(&message), settled) {
            (Some(excused), settled) => {
                excused.made += 1;
                settled.into_iter().for_each(|settled| *settled = true);
                if excused.made > 1 + excused.excuses { Err(Unexplained) } else { Ok(excused.made > 1) }
            }
            (None, Some(settled)) if !*settled => {
                *settled = true;
                Ok(false)
            }
            (None, _) => Err(Unexplained),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;

    fn id() -> Id {
        Id::draw(&mut Xoshiro256PlusPlus::seed_from_u64(1))
    }

    #[test]
    fn a_second_copy_needs_an_excuse_and_a_third_another() {
        let (mut copies, mut settled) = (Copies::default(), false);
        assert_eq!(copies.settle(id(), Some(&mut settled)), Ok(false));
        assert_eq!(copies.settle(id(), Some(&mut settled)), Err(Unexplained));
        copies.excuse(id(), settled);
        assert_eq!(copies.settle(id(), Some(&mut settled)), Ok(true));
        assert_eq!(copies.settle(id(), Some(&mut settled)), Err(Unexplained));
    }

    #[test]
    fn an_excuse_may_come_first_and_outlives_the_message() {
        let mut copies = Copies::default();
        copies.excuse(id(), false);
        assert_eq!(copies.settle(id(), Some(&mut false)), Ok(false));
        assert_eq!(copies.settle(id(), None), Ok(true));
        assert_eq!(copies.settle(id(), None), Err(Unexplained));
    }

    #[test]
    fn a_message_that_is_gone_cannot_be_settled_without_an_excuse() {
        assert_eq!(Copies::default().settle(id(), None), Err(Unexplained));
    }
}
