//! The address of a deployment, as the flags of a command specify it.

#[cfg(feature = "sdk")]
use crate::account::Account;
#[cfg(feature = "sdk")]
use crate::aws::sdk::SdkAws;
use crate::command::command_line;
use crate::deployment::find::Which;
#[cfg(feature = "sdk")]
use crate::failure::Failure;

/// The stack that a command works on if its flags do not name a deployment.
pub const DEFAULT_STACK: &str = "comeback";

/// The name and region of a deployment, and the AWS profile that gives access to it.
///
/// ```
/// use comeback_operate::{Which, address::Address};
///
/// let address = Address { which: Which::Stack("shop".into()), region: Some("eu-west-1".into()), profile: None };
/// assert_eq!(address.flags(), " --stack shop --region eu-west-1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The stack or handler that identifies the deployment.
    pub which: Which,
    /// The AWS region; `None` means the region that the environment or the profile sets.
    pub region: Option<String>,
    /// The AWS profile; `None` means the profile that the environment sets, if any.
    pub profile: Option<String>,
}

impl Address {
    /// The flags that direct a command to this deployment, quoted for a shell and each preceded by a space.
    pub fn flags(&self) -> String {
        let which = match &self.which {
            Which::Handler(handler) => flag("handler", Some(&handler.unqualified())),
            Which::Stack(stack) => flag("stack", Some(&**stack).filter(|stack| *stack != DEFAULT_STACK)),
        };
        which + &self.account_flags()
    }

    /// Returns the flags for the region and the profile, which the AWS CLI has too.
    fn account_flags(&self) -> String {
        flag("region", self.region.as_deref()) + &flag("profile", self.profile.as_deref())
    }

    /// Connects to AWS with this region and profile. If one is missing, the AWS CLI's configuration supplies it.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`SdkAws::connect`].
    #[cfg(feature = "sdk")]
    pub async fn connect(&self) -> Result<Account, Failure> {
        let (aws, mut place) = SdkAws::connect(self.region.as_deref(), self.profile.as_deref()).await?;
        place.flags = self.account_flags();
        Ok(Account { aws: std::rc::Rc::new(aws), place })
    }
}

fn flag(name: &str, value: Option<&str>) -> String {
    value.map(|value| format!(" --{name} {}", command_line([value]))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggested_command_names_the_same_deployment() {
        let flags = |which: Which, region: Option<&str>| {
            Address { which, region: region.map(Into::into), profile: None }.flags()
        };
        assert_eq!(flags(Which::Stack("comeback".into()), None), "");
        assert_eq!(flags(Which::Stack("a b".into()), None), " --stack 'a b'");
        let handler = Which::Handler("mine:live".parse().unwrap());
        assert_eq!(flags(handler, Some("eu-west-1")), " --handler mine --region eu-west-1");
    }
}
