//! A simulated day of retries: its arguments, its figures, and the HTML report about it.

mod arguments;
pub mod figures;
mod page;
mod warnings;

pub use arguments::{FaultFlags, OperatorsOf, SimulateArguments, SimulationFlags};
pub use page::{Beside, Lives, Runs, Tile, beside, page};
pub use warnings::warnings;
