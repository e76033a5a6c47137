//! A request to join and its answer: one proof, and one text that only who asked can read.
//!
//! The body of the request is the first message of the proof, that of the answer is the second one
//! and records with the text's length (u32, little-endian) and the text.

use super::{Initiator, MESSAGE_BYTES, Purpose, RECORD_BYTES_MAX, Session, answer};
use bytes::BytesMut;
use quorate_store::Secret;

/// What a request to join is answered with, if it comes from somebody who knows one of the secrets.
#[must_use]
pub fn reply(secrets: &[Secret], request: &[u8]) -> Option<JoinReply> {
    let first: &[u8; MESSAGE_BYTES] = request.try_into().ok()?;
    let (_, second, session) = answer(Purpose::Join, secrets, first)?;
    Some(JoinReply { second, session })
}

/// A proven request that waits for its answer.
pub struct JoinReply {
    second: [u8; MESSAGE_BYTES],
    session: Session,
}

impl JoinReply {
    /// The body that tells a text.
    #[must_use]
    pub fn tell(mut self, text: &str) -> Vec<u8> {
        let length = u32::try_from(text.len()).expect("a text is below 4 GiB");
        let plain = [&length.to_le_bytes()[..], text.as_bytes()].concat();
        let mut body = self.second.to_vec();
        for piece in plain.chunks(RECORD_BYTES_MAX) {
            body.extend_from_slice(&self.session.seal(piece));
        }
        body
    }
}

/// Reads the answer; none unless it is whole, and from somebody who knows the secret.
#[must_use]
pub fn read(asked: Initiator, body: &[u8]) -> Option<String> {
    let (second, records) = body.split_first_chunk()?;
    let mut session = asked.answered(second)?;
    let (mut records, mut plain) = (BytesMut::from(records), BytesMut::new());
    session.open_all(&mut records, &mut plain).ok()?;
    let (length, text) = plain.split_first_chunk()?;
    let is_whole = records.is_empty() && text.len() == u32::from_le_bytes(*length) as usize;
    is_whole.then(|| String::from_utf8(text.to_vec()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::ask;
    use super::*;

    #[test]
    fn a_text_reaches_who_asked_whole_or_not_at_all() {
        let secret = Secret([7; 32]);
        for length in [0, 5, RECORD_BYTES_MAX - 4, 3 * RECORD_BYTES_MAX] {
            let text = "ä".repeat(length / 2);
            let (asked, request) = ask(Purpose::Join, &secret);
            let body =
                reply(&[Secret([8; 32]), secret], &request).expect("it knows it").tell(&text);
            assert_eq!(read(asked, &body), Some(text));
        }
        for end in [0, MESSAGE_BYTES, MESSAGE_BYTES + 5, RECORD_BYTES_MAX + MESSAGE_BYTES + 18] {
            let (asked, request) = ask(Purpose::Join, &secret);
            let body = reply(&[secret], &request).expect("it knows it");
            let body = body.tell(&"x".repeat(2 * RECORD_BYTES_MAX));
            assert_eq!(read(asked, &body[..end]), None, "cut at {end}");
        }
        assert!(reply(&[secret], b"").is_none());
        let (asked, _) = ask(Purpose::Join, &secret);
        let (_, request) = ask(Purpose::Join, &secret);
        let body = reply(&[secret], &request).expect("it knows it").tell("for another one");
        assert_eq!(read(asked, &body), None);
    }
}
