//! Settings for the AWS SDK, read from the environment variables that every AWS SDK reads.

use aws_config::ecs::EcsCredentialsProvider;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::provider_config::ProviderConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_sqs::config::{Region, SharedCredentialsProvider, SharedHttpClient};
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use super::transport::TrustedFile;

/// Services that the handler calls, as named in environment variables.
const SERVICES: [&str; 3] = ["SQS", "LAMBDA", "SSM"];

/// Variables for credentials, which every SDK prefers to a profile.
const CREDENTIALS: [&str; 3] =
    ["AWS_ACCESS_KEY_ID", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"];
const PROFILES: [&str; 3] = ["AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"];

/// Settings for the AWS SDK, from environment variables instead of shared configuration files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SdkSettings {
    region: Option<String>,
    use_fips: Option<bool>,
    use_dual_stack: Option<bool>,
    endpoints: Endpoints,
    pub(super) trusted: Vec<TrustedFile>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Endpoints {
    of_all: Option<String>,
    of_some: Vec<(&'static str, String)>,
}

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let of = |(service, _): &&(&str, String)| key.service_id().eq_ignore_ascii_case(service);
        self.of_some.iter().find(of).map(|(_, url)| url).or(self.of_all.as_ref()).cloned()
    }
}

impl SdkSettings {
    /// Reads the settings from environment variables; an empty variable counts as unset.
    ///
    /// # Errors
    ///
    /// Fails if a variable that must be true or false is neither, or if credentials would come from a profile.
    pub(crate) fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let text = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let is_set = |name: &&str| text(name).is_some();
        if let (None, Some(profile)) =
            (CREDENTIALS.iter().find(|name| is_set(name)), PROFILES.into_iter().find(is_set))
        {
            return Err(format!(
                "{profile} is set, but the handler reads no profiles; set AWS_ACCESS_KEY_ID, \
                 AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN instead, as \"aws configure export-credentials \
                 --format env\" prints them"
            ));
        }
        let flag = |name| match text(name).map(|value| value.to_ascii_lowercase()) {
            None => Ok(None),
            Some(value) => {
                value.parse().map(Some).map_err(|_| format!("{name} is {value:?}; it must be true or false"))
            }
        };
        let files = |variable| {
            let paths = text(variable).unwrap_or_default();
            let paths = std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty());
            paths.map(|path| TrustedFile { variable, path }).collect::<Vec<_>>()
        };
        let of_service = |service| Some((service, text(&format!("AWS_ENDPOINT_URL_{service}"))?));
        Ok(Self {
            region: text("AWS_REGION").or_else(|| text("AWS_DEFAULT_REGION")),
            use_fips: flag("AWS_USE_FIPS_ENDPOINT")?,
            use_dual_stack: flag("AWS_USE_DUALSTACK_ENDPOINT")?,
            endpoints: Endpoints {
                of_all: text("AWS_ENDPOINT_URL"),
                of_some: SERVICES.into_iter().filter_map(of_service).collect(),
            },
            trusted: ["AWS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().flat_map(files).collect(),
        })
    }

    /// Returns the SDK's configuration, with credentials from variables or, with SnapStart, from an endpoint.
    pub(super) fn sdk_config(&self, http_client: SharedHttpClient) -> SdkConfig {
        let of_provider = ProviderConfig::without_region().with_http_client(http_client.clone());
        let of_container = EcsCredentialsProvider::builder().configure(&of_provider).build();
        let of_variables = EnvironmentVariableCredentialsProvider::new();
        let credentials = CredentialsProviderChain::first_try("variables", of_variables)
            .or_else("the container's endpoint", of_container);
        let mut config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .http_client(http_client)
            .region(self.region.clone().map(Region::new))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .service_config(self.endpoints.clone());
        config.set_use_fips(self.use_fips);
        config.set_use_dual_stack(self.use_dual_stack);
        config.build()
    }
}
