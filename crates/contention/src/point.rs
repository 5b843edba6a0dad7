use crate::strategy::Strategy;

/// The most clients of a point.
pub const MAX_CLIENTS: u32 = 100_000;
/// The most clients that never wait: their calls grow with the square of their number.
pub const MAX_CLIENTS_WITHOUT_BACKOFF: u32 = 10_000;

/// What is run for one cell of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// How many clients, 1 to [`MAX_CLIENTS`].
    pub clients: u32,
    /// How they back off.
    pub strategy: Strategy,
    /// How many runs the means are over; at least 1.
    pub runs: u32,
}
