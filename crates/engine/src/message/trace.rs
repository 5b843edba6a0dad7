//! The header of an X-Ray trace, as a message carries it. It is queue content, so only what has X-Ray's form goes on.

use crate::Record;

/// Bytes of a header that goes on; Lambda's own have some 150.
const LONGEST: usize = 512;

/// An `AWSTraceHeader` of the form `Root=1-8 hex digits-24 hex digits`, which ends there or goes on with `;`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHeader<'a>(&'a str);

impl<'a> TraceHeader<'a> {
    /// The message's header; `None` if it has none, or one of another form.
    pub fn of(record: &'a Record) -> Option<Self> {
        Self::read(record.trace_header.as_deref()?)
    }

    fn read(text: &'a str) -> Option<Self> {
        // It becomes an HTTP header.
        let is_printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let header = Self(text);
        let mut parts =
            text.strip_prefix("Root=").filter(|_| is_printable).map(|_| header.root().split('-'))?;
        let is_hex = |part: Option<&str>, digits| {
            part.is_some_and(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        let has_form = parts.next() == Some("1")
            && is_hex(parts.next(), 8)
            && is_hex(parts.next(), 24)
            && parts.next().is_none();
        (has_form && text.len() <= LONGEST).then_some(header)
    }

    /// All of it.
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// The id of its trace, such as `1-5759e988-bd862e3fe1be46a994272793`.
    pub fn root(self) -> &'a str {
        let root = self.0.split(';').next().unwrap_or_default();
        root.strip_prefix("Root=").unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROOT: &str = "1-5759e988-bd862e3fe1be46a994272793";

    #[test]
    fn a_header_of_lambda_goes_on_with_all_that_it_holds() {
        let long = format!("Root={ROOT};{}", "a".repeat(LONGEST - 41));
        assert_eq!(long.len(), LONGEST);
        for text in [
            "Root=1-5759e988-bd862e3fe1be46a994272793",
            "Root=1-5759e988-bd862e3fe1be46a994272793;",
            "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=25:ab12cd34:3",
            &long,
        ] {
            let header = TraceHeader::read(text).unwrap_or_else(|| panic!("{text} is not read"));
            assert_eq!((header.text(), header.root()), (text, ROOT));
        }
    }

    #[test]
    fn anything_else_is_left_behind() {
        for text in [
            "",
            "Root=",
            "Sampled=1;Root=1-5759e988-bd862e3fe1be46a994272793",
            "Root=2-5759e988-bd862e3fe1be46a994272793",
            "Root=1-5759e98-bd862e3fe1be46a994272793",
            "Root=1-5759e988-bd862e3fe1be46a99427279",
            "Root=1-5759e988-bd862e3fe1be46a994272793-1",
            "Root=1-5759e98g-bd862e3fe1be46a994272793",
            "Root=1-5759e988-bd862e3fe1be46a994272793 ",
            "Root=1-5759e988-bd862e3fe1be46a994272793,Sampled=1",
            "Root=1-5759e988-bd862e3fe1be46a994272793;\r\nX-Amz-Invocation-Type: RequestResponse",
            "Root=1-5759e988-bd862e3fe1be46a994272793;Größe",
            &format!("Root={ROOT};{}", "a".repeat(LONGEST - 40)),
        ] {
            assert_eq!(TraceHeader::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_printable_header_or_none(text in prop_oneof![any::<String>(), "Root=1-[0-9a-f]{8}-[0-9a-f]{24}.*"]) {
            if let Some(header) = TraceHeader::read(&text) {
                prop_assert!(header.text().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
                prop_assert_eq!(header.root().len(), ROOT.len());
            }
        }
    }
}
