use std::path::PathBuf;

use clap::Args;
use comeback_engine::Timestamp;

use crate::flags::PolicyFlags;
use crate::flags::moment;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback event events/second-receive.json > /tmp/now.json
  cargo lambda invoke retry-handler --data-file /tmp/now.json";

#[derive(Debug, Args)]
pub(crate) struct EventArguments {
    /// An SQS event as JSON
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// The moment that is to be now, RFC 3339 [default: the moment the file's last message is due]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(super) at: Option<Timestamp>,
    #[command(flatten)]
    pub(super) policy: PolicyFlags,
}
