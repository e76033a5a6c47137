//! How two programs prove to each other that they belong to one cluster, and keep what they say to
//! themselves: [Noise](https://noiseprotocol.org/noise.html), pattern `NNpsk0`, with a key derived
//! from the cluster's secret. The secret itself never leaves a host.
//!
//! The first message proves that who connects knows the secret, the second one that who answers
//! does, and that it answers to this first message. A recorded first message is answered too, but
//! whoever sends it can neither read what follows nor say anything. Keys are drawn anew for each
//! connection, so a secret that becomes known later opens no recording. Why it is Noise:
//! `docs/adr/0022-noise-with-the-secret-as-key.md`.
//!
//! | module | what it holds |
//! |---|---|
//! | `session` | what is said after the proof: records that nobody else can read, change or repeat |
//! | [`secret`] | the cluster's secret as text, and the file of it |
//! | `secrets` | the secrets that a host accepts at this moment |
//! | `envelope` | a request to join and its answer: a proof and one text |

pub mod envelope;
pub mod secret;
mod secrets;
mod session;

pub use secrets::{Secrets, fingerprint};
pub use session::{Broken, RECORD_BYTES_MAX, Session, next};

use quorate_store::Secret;
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use std::fmt;
use std::str::FromStr;

/// The protocol by Noise's own name for it.
const PROTOCOL: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// How long each of the two messages of a proof is: a public key and a tag.
pub const MESSAGE_BYTES: usize = 48;

/// What a proof is for. One for the one is none for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A connection between two hosts.
    Link,
    /// A host that wants to join.
    Join,
}

impl Purpose {
    fn prologue(self) -> &'static [u8] {
        match self {
            Purpose::Link => b"quorate link",
            Purpose::Join => b"quorate join",
        }
    }

    /// The key that a secret is for this purpose.
    fn key(self, secret: &Secret) -> [u8; 32] {
        let context = match self {
            Purpose::Link => "quorate 2026 proof of a connection between hosts",
            Purpose::Join => "quorate 2026 proof of a host that joins",
        };
        blake3::derive_key(context, &secret.0)
    }
}

/// Which connections between hosts are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encrypt {
    /// Those that leave the machine.
    Auto,
    /// All.
    Always,
}

impl FromStr for Encrypt {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Encrypt, &'static str> {
        match text {
            "auto" => Ok(Encrypt::Auto),
            "always" => Ok(Encrypt::Always),
            _ => Err("expected auto or always"),
        }
    }
}

impl fmt::Display for Encrypt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encrypt::Auto => "auto",
            Encrypt::Always => "always",
        })
    }
}

/// What begins a proof, of either side.
fn builder<'a>(purpose: Purpose, key: &'a [u8; 32]) -> Builder<'a> {
    let params: NoiseParams = PROTOCOL.parse().expect("the name follows the rules of Noise");
    let builder = Builder::new(params).psk(0, key);
    let builder = builder.and_then(|builder| builder.prologue(purpose.prologue()));
    builder.expect("a key and a prologue are set once")
}

/// The side that begins, until it is answered.
pub struct Initiator(Box<HandshakeState>);

/// Begins a proof: the first message, and what understands the answer.
#[must_use]
pub fn ask(purpose: Purpose, secret: &Secret) -> (Initiator, [u8; MESSAGE_BYTES]) {
    let key = purpose.key(secret);
    let state = builder(purpose, &key).build_initiator();
    let mut state = state.expect("every part of the protocol is built in");
    let mut message = [0; MESSAGE_BYTES];
    let length = state.write_message(&[], &mut message).expect("the system gives random bytes");
    assert_eq!(length, MESSAGE_BYTES, "a public key and a tag");
    (Initiator(Box::new(state)), message)
}

impl Initiator {
    /// The session, if the answer comes from somebody who knows the secret.
    #[must_use]
    pub fn answered(mut self, message: &[u8; MESSAGE_BYTES]) -> Option<Session> {
        self.0.read_message(message, &mut []).ok()?;
        Some(Session::new(*self.0))
    }
}

/// The side that was asked: what it answers, by which of its secrets, and the session. None if the
/// other side knows none of them.
#[must_use]
pub fn answer(
    purpose: Purpose,
    secrets: &[Secret],
    first: &[u8; MESSAGE_BYTES],
) -> Option<(Secret, [u8; MESSAGE_BYTES], Session)> {
    let read = |secret: &Secret| {
        let key = purpose.key(secret);
        let state = builder(purpose, &key).build_responder();
        let mut state = state.expect("every part of the protocol is built in");
        state.read_message(first, &mut []).ok()?;
        Some((*secret, state))
    };
    let (secret, mut state) = secrets.iter().find_map(read)?;
    let mut message = [0; MESSAGE_BYTES];
    // A public key that gives no shared secret is refused here.
    let length = state.write_message(&[], &mut message).ok()?;
    assert_eq!(length, MESSAGE_BYTES, "a public key and a tag");
    Some((secret, message, Session::new(state)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use proptest::prelude::*;

    const OURS: Secret = Secret([7; 32]);
    const OTHER: Secret = Secret([8; 32]);

    fn opened(session: &mut Session, record: &[u8]) -> Option<Vec<u8>> {
        let mut plain = BytesMut::new();
        session.open(&record[2..], &mut plain).ok()?;
        Some(plain.to_vec())
    }

    #[test]
    fn who_knows_the_secret_is_let_in_and_hears_what_is_said() {
        let (asked, first) = ask(Purpose::Link, &OURS);
        let (used, second, mut here) =
            answer(Purpose::Link, &[OTHER, OURS], &first).expect("it knows the secret");
        assert_eq!(used, OURS);
        let mut there = asked.answered(&second).expect("so does the other side");
        let (hello, reply) = (there.seal(b"hello"), here.seal(b"you too"));
        assert_eq!(opened(&mut here, &hello).as_deref(), Some(&b"hello"[..]));
        assert_eq!(opened(&mut there, &reply).as_deref(), Some(&b"you too"[..]));
        assert!(!hello.windows(5).any(|piece| piece == b"hello"), "nobody else reads it");
        assert_eq!(opened(&mut here, &hello), None, "nothing is heard twice");
    }

    #[test]
    fn who_does_not_know_it_is_turned_away_on_either_side() {
        let (_, first) = ask(Purpose::Link, &OTHER);
        assert!(answer(Purpose::Link, &[OURS], &first).is_none());
        let (_, first) = ask(Purpose::Join, &OURS);
        assert!(answer(Purpose::Link, &[OURS], &first).is_none(), "it is for something else");
        let (asked, first) = ask(Purpose::Link, &OURS);
        let (_, other) = ask(Purpose::Link, &OTHER);
        let false_answer = answer(Purpose::Link, &[OTHER], &other).expect("its own secret").1;
        assert!(asked.answered(&false_answer).is_none());
        let again = ask(Purpose::Link, &OURS).0;
        let real = answer(Purpose::Link, &[OURS], &first).expect("the secret").1;
        assert!(again.answered(&real).is_none(), "it is the answer to another question");
    }

    #[test]
    fn a_recorded_connection_is_answered_and_says_nothing() {
        let (asked, first) = ask(Purpose::Link, &OURS);
        let (_, second, _) = answer(Purpose::Link, &[OURS], &first).expect("the secret");
        let mut there = asked.answered(&second).expect("the secret");
        let record = there.seal(b"hello");
        let (_, again, mut here) = answer(Purpose::Link, &[OURS], &first).expect("the secret");
        assert_ne!(second, again, "keys are drawn anew");
        assert_eq!(opened(&mut here, &record), None);
    }

    proptest! {
        #[test]
        fn any_first_bytes_are_survived(bytes: [u8; MESSAGE_BYTES]) {
            prop_assert!(answer(Purpose::Link, &[OURS, OTHER], &bytes).is_none());
            prop_assert!(ask(Purpose::Join, &OURS).0.answered(&bytes).is_none());
        }

        #[test]
        fn a_changed_byte_is_noticed(at in 0..MESSAGE_BYTES, by in 1u8..) {
            let (_, mut first) = ask(Purpose::Link, &OURS);
            first[at] ^= by;
            // The highest bit of a public key means nothing, but it is signed like the rest.
            prop_assert!(answer(Purpose::Link, &[OURS], &first).is_none());
        }
    }
}
