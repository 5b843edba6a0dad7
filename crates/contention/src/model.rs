/// Half the ceiling of the first wait, in ms: the study counts attempts from 1, as the published
/// program does.
pub(crate) const BASE_MS: f64 = 5.0;
/// No wait is longer, in ms.
pub(crate) const CAP_MS: f64 = 2_000.0;
/// A hop takes |Normal(mean, deviation)|, in ms.
pub(crate) const HOP_MEAN_MS: f64 = 10.0;
pub(crate) const HOP_DEVIATION_MS: f64 = 2.0;
