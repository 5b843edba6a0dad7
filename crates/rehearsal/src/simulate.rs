//! The parts of `comeback simulate`: its arguments, figures, warnings and HTML report.

mod arguments;
pub mod figures;
mod page;
mod warnings;

pub use arguments::{FaultFlags, SimulateArguments, SimulationFlags};
pub use page::{Beside, Lives, Runs, Tile, beside, page};
pub use warnings::warnings;
