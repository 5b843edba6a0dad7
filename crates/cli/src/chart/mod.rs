//! Pictures. Nothing here knows a subcommand.
//!
//! | file | holds |
//! |---|---|
//! | `palette` | every colour, on a light page and on a dark one |
//! | `svg` | a drawing as SVG text |
//! | `count_axis`, `time_axis` | axes with round ticks |

pub(crate) mod count_axis;
pub(crate) mod palette;
pub(crate) mod svg;
pub(crate) mod time_axis;
