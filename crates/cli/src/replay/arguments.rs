use std::path::PathBuf;

use clap::Args;
use comeback_engine::Timestamp;

use crate::flags::PolicyFlags;
use crate::flags::moment;

/// What `--target-functions` allows by default: the function of the samples in `events/`.
pub const SAMPLE_TARGET: &str = "arn:aws:lambda:eu-west-1:123456789012:function:flaky-target";

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback replay events/*.json                      what the handler does with each sample
  comeback replay --at 2026-09-14T16:00:00Z events/early-return.json
  comeback replay --non-retryable-errors 'Order*' events/non-retryable-error.json";

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// SQS event files to run the handler on
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Print JSON: the same arguments give the same bytes
    #[arg(long)]
    pub(super) json: bool,
    /// The handler's clock, RFC 3339 [default: the moment the file's last message is due]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(super) at: Option<Timestamp>,
    /// TARGET_FUNCTIONS: ARNs of functions that may be re-invoked [default: the samples' target]
    #[arg(long, value_name = "ARNS")]
    pub(super) target_functions: Option<String>,
    #[command(flatten)]
    pub(super) policy: PolicyFlags,
}
