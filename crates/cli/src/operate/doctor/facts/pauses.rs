//! Pauses that the handler cannot read.

use comeback_engine::Pauses;

use crate::account::{Account, Failure};
use crate::operate::pauses::history::{Version, newest_readable, versions};

/// The parameter's text is not readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreadablePauses {
    pub(crate) parameter: String,
    pub(crate) problem: String,
    /// The newest readable version; `None` if SSM keeps no readable one.
    pub(crate) last_readable: Option<i64>,
}

impl UnreadablePauses {
    /// `None` if the text is readable.
    pub(crate) async fn read(account: &Account, parameter: &str) -> Result<Option<Self>, Failure> {
        Ok(Self::of(parameter, &versions(account, parameter).await?))
    }

    fn of(parameter: &str, versions: &[Version]) -> Option<Self> {
        let problem = Pauses::read(&versions.last()?.text).err()?.to_string();
        Some(Self { parameter: parameter.to_owned(), problem, last_readable: newest_readable(versions) })
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::Timestamp;

    use super::*;

    #[test]
    fn the_newest_readable_version_is_found() {
        let of = |texts: &[&str]| {
            let version = |(text, number): (&&str, i64)| Version {
                number,
                at: Timestamp::from_secs(0),
                by: None,
                text: (*text).to_owned(),
            };
            let versions: Vec<Version> = texts.iter().zip(7..).map(version).collect();
            UnreadablePauses::of("/pauses", &versions).map(|it| it.last_readable)
        };
        let readable = r#"{"v":1,"pauses":[]}"#;
        assert_eq!(of(&[readable, readable, "by hand", "{}"]), Some(Some(8)));
        assert_eq!(of(&["by hand"]), Some(None));
        assert_eq!([of(&["by hand", readable]), of(&[])], [None, None]);
    }
}
