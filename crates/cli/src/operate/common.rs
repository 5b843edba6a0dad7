use clap::Args;
use comeback_operate::FunctionName;

/// What every command on a deployment takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Deployment and output")]
pub(crate) struct Common {
    /// The retry handler of the deployment [default: the one of --stack]
    #[arg(long, value_name = "FUNCTION")]
    pub(crate) handler: Option<FunctionName>,
    /// The CloudFormation stack that has the retry handler
    #[arg(long, value_name = "NAME", default_value = "comeback", conflicts_with = "handler")]
    pub(crate) stack: String,
    /// The AWS region [default: the environment's or the profile's]
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// The profile of your AWS configuration
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Print JSON, and never ask
    #[arg(long)]
    pub(crate) json: bool,
    /// Change what is to be changed without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}
