use std::path::PathBuf;

use clap::Args;

use crate::flags;
use crate::flags::PolicyFlags;
use crate::text::numbers::read_rate;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback schedule                                  the default policy
  comeback schedule --max-age 1h --jitter equal      a shorter one, with waits that vary less
  comeback schedule --base-backoff 30s --max-backoff 30s --max-retries 20 --plot schedule.svg
  comeback schedule --max-age 12h --rate 20/s        what it takes that so many events fail
  comeback schedule --jitter decorrelated --json";

#[derive(Debug, Args)]
pub(crate) struct ScheduleArguments {
    /// Print JSON: the same arguments give the same bytes
    #[arg(long)]
    pub(super) json: bool,
    /// Write the picture as SVG: to this file, or as schedule.svg to a folder, made if it is missing
    #[arg(long, value_name = "FILE.svg|DIR", value_parser = flags::svg_or_folder)]
    pub(super) plot: Option<PathBuf>,
    /// Events to follow, 1 to 100000 [default: 10000, fewer where retries are many]
    #[arg(long, value_name = "N")]
    pub(super) events: Option<usize>,
    /// Rate of events that fail, as 10/s, 600/m, 20000/h, 1000000/d or a plain number a second: shows
    /// how many wait, hidden and delayed, what that costs, and the MAXIMUM_CONCURRENCY it takes
    #[arg(long, value_name = "EVENTS", value_parser = read_rate, allow_hyphen_values = true)]
    pub(super) rate: Option<f64>,
    /// Everything random is drawn from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) policy: PolicyFlags,
}
