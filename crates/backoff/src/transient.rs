//! HTTP status codes and I/O errors after which a retry may succeed.

#[cfg(feature = "std")]
use std::io;

/// Returns true for an HTTP status code after which a retry of the same request may succeed: 408, 425, 429, 500, 502,
/// 503 and 504.
///
/// | status | why it is transient |
/// |---|---|
/// | 408, 504 | a timeout in the server, or in a server behind it |
/// | 425 | the server wants the request again once the TLS handshake is done |
/// | 429, 503 | the server wants the request again later, often with `Retry-After` |
/// | 500 | an unexpected condition: most often a crash or an overload |
/// | 502 | a proxy whose server is restarting |
///
/// Returns false for all other status codes. The causes of other standard 4xx and 5xx codes do not go away on their
/// own. The caller decides about vendor-specific codes, such as 520 to 529.
///
/// Repeat a request only if repeating it is safe: after a timeout or a 5xx, the first request may have taken effect.
///
/// Sources: RFC 9110 § 15, RFC 6585 § 4 (429), RFC 8470 § 5.2 (425).
///
/// ```
/// assert!(comeback_backoff::is_transient_status(503));
/// assert!(!comeback_backoff::is_transient_status(404));
/// ```
pub const fn is_transient_status(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

/// Returns true for transient network errors: timeouts, resets, refused connections, and temporary failures to
/// resolve a name.
///
/// | kind | why it is transient |
/// |---|---|
/// | `TimedOut` | the peer or the network is slow |
/// | `ConnectionReset`, `BrokenPipe` | a read or write found that the peer had dropped the connection |
/// | `ConnectionAborted` | this machine's network dropped the connection, or the peer closed it before `accept` |
/// | `UnexpectedEof` | the peer closed the connection in the middle of a response |
/// | `ConnectionRefused` | the peer is restarting |
/// | `HostUnreachable`, `NetworkUnreachable`, `NetworkDown` | routes come back after a failover |
/// | a temporary lookup failure (`EAI_AGAIN`, `WSATRY_AGAIN`), which has no kind of its own | the name server did not answer |
///
/// Use this function only for connections: a file that ends too early also gives `UnexpectedEof`.
///
/// ```
/// use std::io::{Error, ErrorKind};
///
/// assert!(comeback_backoff::is_transient_io(&Error::from(ErrorKind::ConnectionRefused)));
/// assert!(!comeback_backoff::is_transient_io(&Error::from(ErrorKind::PermissionDenied)));
/// ```
#[cfg(feature = "std")]
pub fn is_transient_io(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::TimedOut
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::BrokenPipe
            | Kind::UnexpectedEof
            | Kind::ConnectionRefused
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
    ) || is_transient_lookup(error)
}

/// Returns true for a temporary failure to resolve a name. The standard library has no `ErrorKind` for it, and keeps
/// the error code only on Windows.
///
/// Sources: `gai_strerror(EAI_AGAIN)` in glibc, musl, macOS and the BSDs; error 11002 in WinSock.
#[cfg(feature = "std")]
fn is_transient_lookup(error: &io::Error) -> bool {
    use alloc::string::ToString;
    if cfg!(windows) {
        return error.raw_os_error() == Some(11_002);
    }
    let message = error.to_string();
    let lookup = message.strip_prefix("failed to lookup address information: ");
    lookup.is_some_and(|why| {
        why.eq_ignore_ascii_case("temporary failure in name resolution") || why == "Try again"
    })
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "std")]
    use std::io::{Error, ErrorKind};

    #[cfg(feature = "std")]
    use super::is_transient_io;
    use super::is_transient_status;

    #[test]
    fn exactly_seven_statuses_are_transient() {
        let transient: Vec<u16> = (0..=u16::MAX).filter(|&status| is_transient_status(status)).collect();
        assert_eq!(transient, [408, 425, 429, 500, 502, 503, 504]);
    }

    #[cfg(all(feature = "std", not(windows)))]
    #[test]
    fn lookup_failed_for_now_is_transient() {
        let lookup = |why| Error::other(format!("failed to lookup address information: {why}"));
        for (why, expected) in [
            ("Temporary failure in name resolution", true),
            ("Try again", true),
            ("Name or service not known", false),
            ("Name does not resolve", false),
            ("nodename nor servname provided, or not known", false),
        ] {
            assert_eq!(is_transient_io(&lookup(why)), expected, "{why}");
        }
        assert!(!is_transient_io(&Error::other("Temporary failure in name resolution, says a file")));
    }

    #[cfg(feature = "std")]
    #[test]
    fn only_network_errors_are_transient() {
        use ErrorKind::*;
        let network = [TimedOut, ConnectionReset, ConnectionAborted, BrokenPipe, UnexpectedEof];
        let network =
            [&network[..], &[ConnectionRefused, HostUnreachable, NetworkUnreachable, NetworkDown]].concat();
        let local = [NotFound, PermissionDenied, AddrInUse, AddrNotAvailable, InvalidData, InvalidInput];
        let local = [&local[..], &[Unsupported, OutOfMemory, Other]].concat();
        for kind in [&network[..], &local].concat() {
            let expected = network.contains(&kind);
            assert_eq!(is_transient_io(&Error::from(kind)), expected, "{kind}");
            assert_eq!(is_transient_io(&Error::new(kind, "with a message")), expected, "{kind}");
        }
    }
}
