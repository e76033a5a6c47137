//! What a client shows to be somebody.

use alloc::format;
use alloc::string::String;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_kernel::tree::{Failure, Id};
use sha1::{Digest, Sha1};

/// The most bytes that somebody shows at once.
const SHOWN_BYTES_MAX: usize = 4096;

/// Who somebody is that shows this; nobody else than before if it is where the client is, which is
/// known.
///
/// The digest is that of clients' own libraries, which compute it too: the name, a colon, and the
/// Base64 of SHA-1 over name, colon and password. It protects from reading, not from guessing.
///
/// # Errors
/// It shows nothing.
pub fn credential(scheme: &str, shown: &[u8]) -> Result<Option<Id>, Failure> {
    match scheme {
        // It goes with all that the client asks.
        _ if shown.len() > SHOWN_BYTES_MAX => Err(Failure::AuthFailed),
        "digest" => {
            let text = core::str::from_utf8(shown).map_err(|_| Failure::AuthFailed)?;
            let (user, _) = text.split_once(':').ok_or(Failure::AuthFailed)?;
            let hash = STANDARD.encode(Sha1::digest(shown));
            Ok(Some(Id { scheme: String::from("digest"), id: format!("{user}:{hash}") }))
        }
        "ip" | "world" => Ok(None),
        _ => Err(Failure::AuthFailed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_clients_libraries() {
        let id = |id: &str| Ok(Some(Id { scheme: "digest".into(), id: id.into() }));
        // As `DigestAuthenticationProvider` of ZooKeeper prints it.
        assert_eq!(credential("digest", b"super:test"), id("super:D/InIHSb7yEEbrWz8b9l71RjZJU="));
        assert_eq!(credential("digest", b"nobody"), Err(Failure::AuthFailed));
        assert_eq!(credential("digest", b"\xff:a"), Err(Failure::AuthFailed));
        assert_eq!(credential("kerberos", b"a:b"), Err(Failure::AuthFailed));
        assert_eq!(credential("ip", b""), Ok(None));
        let long = [b"a:", &[b'b'; SHOWN_BYTES_MAX - 1][..]].concat();
        assert_eq!(credential("digest", &long), Err(Failure::AuthFailed));
        assert!(credential("digest", &long[1..]).is_ok());
    }
}
