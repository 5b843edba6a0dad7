//! The parts of `comeback simulate`: its arguments, the figures of a run and warnings about it, and the HTML report on
//! the run.

mod arguments;
pub mod figures;
mod page;
mod warnings;

pub use arguments::{FaultFlags, OperatorsOf, SimulateArguments, SimulationFlags};
pub use page::{Beside, Lives, Runs, Tile, beside, page};
pub use warnings::warnings;
