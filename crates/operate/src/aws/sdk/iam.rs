//! Converts IAM's responses to our own types.

use std::str::Utf8Error;

use percent_encoding::percent_decode_str;

/// Decodes a policy document from IAM. An emulator may return plain JSON, which needs no decoding.
pub(super) fn document(text: &str) -> Result<String, Utf8Error> {
    if text.trim_start().starts_with('{') {
        return Ok(text.to_owned());
    }
    Ok(percent_decode_str(text).decode_utf8()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_encoded_policy_is_decoded() {
        let json = r#"{"Resource":"arn:aws:sqs:eu-west-1:123456789012:a%20b"}"#;
        let encoded = "%7B%22Resource%22%3A%22arn%3Aaws%3Asqs%3Aeu-west-1%3A123456789012%3Aa%2520b%22%7D";
        assert_eq!([document(encoded), document(json)], [Ok(json.to_owned()), Ok(json.to_owned())]);
        assert!(document("%FF").is_err());
    }
}
