//! Connects to an account: finds the region, the profile and the credentials, and creates the clients.

use std::error::Error;
use std::mem;
use std::time::Duration;

use aws_config::profile::{Profile, ProfileFileCredentialsProvider, ProfileSet};
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_runtime::env_config::file::EnvConfigFiles;
use aws_sdk_sts::config::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeDeserializationInterceptorContextMut;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::ConfigBag;
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_types::os_shim_internal::{Env, Fs};
use http_body_util::Limited;

use crate::account::Place;
use crate::aws::sdk::Or as _;
use crate::aws::sdk::clock::Clock;
use crate::failure::Failure;
use crate::text;
use crate::text::{Piece, Quotes, Text};

/// The time limit for one attempt of an AWS call; it must exceed SQS's longest long poll, 20 s.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a response's body, in bytes. AWS's largest response has ten SQS messages of 1 MiB each, and JSON
/// may triple their size. A larger response cannot be from AWS, and could exhaust memory.
const LARGEST_ANSWER: usize = 64 << 20;
/// The compass directions in the names of AWS regions.
const DIRECTIONS: [&str; 9] =
    ["central", "east", "north", "northeast", "northwest", "south", "southeast", "southwest", "west"];

/// An AWS account, called through the AWS SDK.
#[derive(Clone, Debug)]
pub struct SdkAws {
    config: SdkConfig,
    pub(super) clock: Clock,
    pub(super) cloudformation: aws_sdk_cloudformation::Client,
    pub(super) cloudwatch: aws_sdk_cloudwatch::Client,
    pub(super) iam: aws_sdk_iam::Client,
    pub(super) kms: aws_sdk_kms::Client,
    pub(super) lambda: aws_sdk_lambda::Client,
    pub(super) logs: aws_sdk_cloudwatchlogs::Client,
    pub(super) sqs: aws_sdk_sqs::Client,
    pub(super) ssm: aws_sdk_ssm::Client,
}

impl SdkAws {
    /// Connects to AWS with the same configuration files and environment variables as the AWS CLI. `region` and
    /// `profile` take precedence over environment variables.
    ///
    /// # Errors
    ///
    /// Fails if the region, the profile or the credentials are invalid, or if AWS does not respond.
    pub async fn connect(region: Option<&str>, profile: Option<&str>) -> Result<(Self, Place), Failure> {
        if let Some(region) = region {
            check_region(region)?;
        }
        let profiles = profiles(&Fs::real(), &Env::real(), profile).await?;
        let config = config(region, profile).await?;
        if let Some(provider) = config.credentials_provider() {
            provider.provide_credentials().await.map_err(|error| no_credentials(&error, &profiles))?;
        }
        let region = config.region().map(ToString::to_string).unwrap_or_default();
        let identity = aws_sdk_sts::Client::new(&config).get_caller_identity().send().await;
        let identity = identity.or_failure("sts:GetCallerIdentity", &format!("the caller in {region}"))?;
        let place = Place {
            account: identity.account.unwrap_or_default(),
            region,
            caller: identity.arn.unwrap_or_default(),
            flags: String::new(),
        };
        Ok((Self::new(&config), place))
    }

    /// Creates the clients from an SDK configuration, which must have credentials and a region.
    pub fn new(config: &SdkConfig) -> Self {
        let clock = Clock::default();
        macro_rules! client {
            ($sdk:ident) => {{
                let config = $sdk::config::Builder::from(config);
                let config = config.interceptor(LimitAnswers).interceptor(clock.clone());
                $sdk::Client::from_conf(config.build())
            }};
        }
        Self {
            cloudformation: client!(aws_sdk_cloudformation),
            cloudwatch: client!(aws_sdk_cloudwatch),
            iam: client!(aws_sdk_iam),
            kms: client!(aws_sdk_kms),
            lambda: client!(aws_sdk_lambda),
            logs: client!(aws_sdk_cloudwatchlogs),
            sqs: client!(aws_sdk_sqs),
            ssm: client!(aws_sdk_ssm),
            config: config.clone(),
            clock,
        }
    }

    /// The SDK configuration that the clients were created from.
    pub const fn config(&self) -> &SdkConfig {
        &self.config
    }
}

async fn config(region: Option<&str>, profile: Option<&str>) -> Result<SdkConfig, Failure> {
    let timeouts =
        TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_attempt_timeout(ATTEMPT_TIMEOUT);
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .retry_config(RetryConfig::standard())
        .timeout_config(timeouts.build());
    if let Some(region) = region {
        loader = loader.region(Region::new(region.to_owned()));
    }
    if let Some(profile) = profile {
        loader = loader.profile_name(profile);
    }
    let config = loader.load().await;
    let Some(region) = config.region().cloned() else {
        let how = "pass --region, or set AWS_REGION or the profile's region";
        return Err(Failure::could_not(format!("no region: {how}")));
    };
    check_region(region.as_ref())?;
    let Some(profile) = profile else { return Ok(config) };
    let known = ProviderConfig::without_region().with_region(Some(region));
    let provider = ProfileFileCredentialsProvider::builder().configure(&known).profile_name(profile);
    let provider = SharedCredentialsProvider::new(provider.build());
    Ok(config.into_builder().credentials_provider(provider).build())
}

/// Makes the SDK fail a call if the body of the response is larger than [`LARGEST_ANSWER`].
#[derive(Debug)]
struct LimitAnswers;

impl Intercept for LimitAnswers {
    fn name(&self) -> &'static str {
        "LimitAnswers"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = context.response_mut().body_mut();
        let whole = mem::replace(body, SdkBody::taken());
        *body = SdkBody::from_body_1_x(Limited::new(whole, LARGEST_ANSWER));
        Ok(())
    }
}

/// Fails unless `name` has the form of a region: lower-case words, a compass direction and a number.
fn check_region(name: &str) -> Result<(), Failure> {
    let parts: Vec<&str> = name.split('-').collect();
    let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if let [places @ .., direction, number] = &*parts
        && !places.is_empty()
        && places.iter().all(is_word)
        && DIRECTIONS.contains(direction)
        && is_number(number)
    {
        return Ok(());
    }
    let how = "set one such as eu-west-1 with --region, AWS_REGION or the profile";
    Err(Failure::could_not(format!("{name:?} is not a region: {how}")))
}

/// Reports that no credentials were found, and adds the innermost cause of the error if it has one.
fn no_credentials(error: &(dyn Error + 'static), profiles: &ProfileSet) -> Failure {
    let (mut cause, mut next) = (None, error.source());
    while let Some(source) = next {
        (cause, next) = (Some(source), source.source());
    }
    let cause = cause.map(|cause| cause.to_string());
    let cause =
        cause.as_deref().map(|cause| cause.trim_start_matches("ProfileFile provider could not be built: "));
    let how = match single_sign_on(profiles) {
        Some(name) => {
            let login = format!("aws sso login --profile {}", crate::command::command_line([name]));
            text!["run ", Text::from(Piece::Shell(login, Quotes::Backquotes))]
        }
        None if cause.is_some() => "correct that, or pass another profile with --profile".into(),
        None => "log in, pass --profile, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".into(),
    };
    let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    Failure::could_not(text![format!("no AWS credentials{cause}: "), how])
}

/// The first profile that uses single sign-on, among the selected profile and its source profiles.
fn single_sign_on(profiles: &ProfileSet) -> Option<&str> {
    let mut name = profiles.selected_profile();
    // The limit ends the search if the source profiles form a cycle, which the SDK reports.
    for _ in 0..10 {
        let profile: &Profile = profiles.get_profile(name)?;
        let has = |key: &str| profile.get(key).is_some();
        if has("sso_start_url")
            || profile.get("sso_session").is_some_and(|it| profiles.sso_session(it).is_some())
        {
            return Some(profile.name());
        }
        name = profile.get("source_profile")?;
    }
    None
}

/// Selects the profile named by `flag` or `AWS_PROFILE`. Fails if the profile does not exist. The SDK itself would not
/// report this.
async fn profiles(fs: &Fs, env: &Env, flag: Option<&str>) -> Result<ProfileSet, Failure> {
    let named = flag.map(|name| name.to_owned().into());
    let profiles = aws_config::profile::load(fs, env, &EnvConfigFiles::default(), named).await;
    let profiles = profiles.map_err(|error| Failure::could_not(DisplayErrorContext(error).to_string()))?;
    let name = profiles.selected_profile();
    // A profile named `default` need not exist unless the flag names it.
    if profiles.get_profile(name).is_some() || (flag.is_none() && name == "default") {
        return Ok(profiles);
    }
    let by = if flag.is_some() { "--profile" } else { "AWS_PROFILE" };
    Err(Failure::could_not(text![
        format!("{by}: your AWS configuration has no profile {name}; "),
        Text::from(Piece::Shell("aws configure list-profiles".into(), Quotes::Backquotes)),
        " lists them"
    ]))
}

#[cfg(test)]
mod tests {
    use aws_runtime::env_config::file::EnvConfigFileKind;

    use super::*;

    #[test]
    fn a_region_has_a_direction_and_a_number() {
        for region in
            ["eu-west-1", "us-gov-east-1", "ap-southeast-7", "eusc-de-east-1", "us-isob-east-1", "cn-north-1"]
        {
            assert_eq!(check_region(region), Ok(()), "{region}");
        }
        for other in [
            "bad region",
            "",
            "eu-west-1a",
            "EU-WEST-1",
            "us-moon-1",
            "west-1",
            "eu-west-",
            "eu--west-1",
            "eu-west-1-2",
        ] {
            let refused = check_region(other).unwrap_err().to_string();
            let how = "set one such as eu-west-1 with --region, AWS_REGION or the profile";
            assert_eq!(refused, format!("{other:?} is not a region: {how}"));
        }
    }

    /// Tries to get credentials from a profile in this configuration file, and returns the text of the error.
    async fn refused(config: &'static str, profile: &'static str) -> String {
        let fs = Fs::from_slice(&[("config", config)]);
        let env = Env::from_slice(&[
            ("AWS_CONFIG_FILE", "config"),
            ("AWS_SHARED_CREDENTIALS_FILE", "none"),
            ("HOME", "/nowhere"),
        ]);
        let profiles = profiles(&fs, &env, Some(profile)).await.unwrap();
        let known = ProviderConfig::without_region().with_region(Some(Region::from_static("eu-west-1")));
        let files = EnvConfigFiles::builder().with_contents(EnvConfigFileKind::Config, config).build();
        let provider = ProfileFileCredentialsProvider::builder().configure(&known).profile_files(files);
        let provider = provider.profile_name(profile).build();
        no_credentials(&provider.provide_credentials().await.unwrap_err(), &profiles).to_string()
    }

    #[tokio::test]
    async fn a_mistake_in_a_profile_is_named() {
        let role = "role_arn = arn:aws:iam::123456789012:role/x\n";
        let config = |text: &str| -> &'static str { Box::leak(text.replace("ROLE", role).into_boxed_str()) };
        for (text, said) in [
            ("[profile p]\nROLEsource_profile = missing\n", "profile `missing` was not defined"),
            (
                "[profile p]\nROLEsource_profile = q\n[profile q]\nROLEsource_profile = p\n",
                "profile formed an infinite loop",
            ),
            (
                "[profile p]\nROLE",
                "invalid credential source in `p`: profile must contain `source_profile` or `credential_source`",
            ),
            ("[profile p]\naws_access_key_id = AKIA\n", "aws_secret_access_key"),
            ("[profile p]\naws_secret_access_key = s\n", "aws_access_key_id"),
            (
                "[profile p]\nsso_session = nowhere\nsso_account_id = 1\nsso_role_name = A\n",
                "sso-session named `nowhere` (referenced by profile `p`) was not found",
            ),
            ("[profile p]\nROLEsource_profile = q\n[profile q]\nregion = eu-west-1\n", "`q`"),
            ("[profile p]\nROLEcredential_source = Moon\n", "Moon"),
        ] {
            let refused = refused(config(text), "p").await;
            assert!(
                refused.starts_with("no AWS credentials (") && refused.contains(said),
                "{text}: {refused}"
            );
            assert!(!refused.contains("already taken") && !refused.contains("aws sso login"), "{refused}");
        }
    }

    #[tokio::test]
    async fn missing_session_names_the_login_command() {
        let session =
            "[sso-session corp]\nsso_start_url = https://corp.awsapps.com/start\nsso_region = us-east-1\n";
        let own = "sso_session = corp\nsso_account_id = 123456789012\nsso_role_name = Admin\n";
        let config =
            |text: String| -> &'static str { Box::leak((session.to_owned() + &text).into_boxed_str()) };
        let direct = refused(config(format!("[profile my-sso]\n{own}")), "my-sso").await;
        assert!(direct.ends_with("run `aws sso login --profile my-sso`"), "{direct}");
        let role = "role_arn = arn:aws:iam::123456789012:role/x\nsource_profile = sso\n";
        let source = refused(config(format!("[profile p]\n{role}[profile sso]\n{own}")), "p").await;
        assert!(source.ends_with("run `aws sso login --profile sso`"), "{source}");
    }

    #[tokio::test]
    async fn missing_credentials_are_one_line() {
        let how = "log in, pass --profile, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
        assert_eq!(
            refused("[profile empty]\nregion = eu-west-1\n", "empty").await,
            format!("no AWS credentials: {how}")
        );
    }

    #[tokio::test]
    async fn named_profile_must_exist() {
        let fs = Fs::from_slice(&[("config", "[profile here]\nregion = eu-west-1")]);
        let env = |profile: &'static str| {
            let files = [("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "none")];
            let profile = Some(("AWS_PROFILE", profile)).filter(|(_, name)| !name.is_empty());
            // A profile that does not exist is an error, even though access keys in the environment take precedence.
            let keys = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")];
            Env::from_slice(&files.into_iter().chain(profile).chain(keys).collect::<Vec<_>>())
        };
        let check = async |profile, flag| profiles(&fs, &env(profile), flag).await.map(drop);
        assert_eq!(check("", None).await, Ok(()));
        assert_eq!(check("here", None).await, Ok(()));
        assert_eq!(check("gone", Some("here")).await, Ok(()));
        for (profile, flag, by) in [
            ("gone", None, "AWS_PROFILE"),
            ("here", Some("gone"), "--profile"),
            ("", Some("default"), "--profile"),
        ] {
            let name = flag.unwrap_or(profile);
            let refused = format!(
                "{by}: your AWS configuration has no profile {name}; `aws configure list-profiles` lists them"
            );
            assert_eq!(check(profile, flag).await.unwrap_err().to_string(), refused);
        }
    }
}
