//! Operators who write given values to the pauses parameter, and do nothing else.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use comeback_engine::Timestamp;
use comeback_timelapse::{MakeOperators, OperatedDeployment, Operators, START};

/// Returns operators who write each text to the pauses parameter at the given time after the run's start.
pub(super) fn writing(texts: Vec<(Duration, String)>) -> MakeOperators {
    MakeOperators::new(move |deployment| {
        Box::new(Writing { deployment, left: texts.clone().into_iter().collect() })
    })
}

struct Writing {
    deployment: Rc<dyn OperatedDeployment>,
    left: VecDeque<(Duration, String)>,
}

impl Operators for Writing {
    fn act(&mut self) -> Option<Timestamp> {
        loop {
            let at = START.saturating_add(self.left.front()?.0);
            if at > self.deployment.now() {
                return Some(at);
            }
            let (_, text) = self.left.pop_front()?;
            self.deployment.write_pauses(&text);
        }
    }
}
