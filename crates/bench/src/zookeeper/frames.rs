//! Counts answers in a stream of ZooKeeper's frames without keeping or copying what is in them.

use quorate_doors::zookeeper::client::NO_NODE;
use quorate_doors::zookeeper::wire::codes::EVENT_XID;
use quorate_doors::zookeeper::wire::jute::Reader;
use quorate_kernel::limits::JUTE_FRAME_BYTES_MAX;

use crate::scanner::{Malformed, ReplyKind};

/// A length, and as much of a frame as is looked at: number, zxid and error, or what the first
/// answer has in their place.
const HEAD_BYTES: usize = 4 + HEADER_BYTES;
const HEADER_BYTES: usize = 4 + 8 + 4;
/// There is one already. Only the load phase makes nodes, and may do so twice.
const NODE_EXISTS: i32 = -110;

/// Where the stream of one connection stands.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    head: [u8; HEAD_BYTES],
    head_len: usize,
    /// How many bytes of the frame follow what is kept.
    left: usize,
    /// The first answer of the stream has come: the session is open.
    is_open: bool,
    events: usize,
    error: String,
}

impl Frames {
    /// The next answer that ends within `input`, which is moved past what was looked at.
    ///
    /// # Errors
    /// The bytes are no answer; nothing after them can be understood.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<ReplyKind>, Malformed> {
        while !input.is_empty() {
            if self.head_len < HEAD_BYTES {
                let taken = input.len().min(HEAD_BYTES - self.head_len);
                self.head[self.head_len..][..taken].copy_from_slice(&input[..taken]);
                self.head_len += taken;
                *input = &input[taken..];
                if self.head_len < HEAD_BYTES {
                    return Ok(None);
                }
                self.left = self.length()?.checked_sub(HEADER_BYTES).ok_or(Malformed::Frame)?;
            }
            let skipped = input.len().min(self.left);
            *input = &input[skipped..];
            self.left -= skipped;
            if self.left > 0 {
                return Ok(None);
            }
            self.head_len = 0;
            if let Some(reply) = self.reply()? {
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    fn length(&self) -> Result<usize, Malformed> {
        let length = Reader::new(&self.head).int().map_err(|_| Malformed::Frame)?;
        let length = usize::try_from(length).map_err(|_| Malformed::Frame)?;
        if length <= JUTE_FRAME_BYTES_MAX { Ok(length) } else { Err(Malformed::Frame) }
    }

    /// What a whole frame says; nothing if it is an event.
    fn reply(&mut self) -> Result<Option<ReplyKind>, Malformed> {
        let mut reader = Reader::new(&self.head[4..]);
        let first = reader.int().map_err(|_| Malformed::Frame)?;
        if !self.is_open {
            // Behind the version of the protocol is the session's time-out; 0 is no session.
            let timeout = reader.int().map_err(|_| Malformed::Frame)?;
            self.is_open = timeout > 0;
            if self.is_open {
                return Ok(Some(ReplyKind::Done));
            }
            self.error = "NO_SESSION".to_owned();
            return Ok(Some(ReplyKind::Error));
        }
        let _zxid = reader.long().map_err(|_| Malformed::Frame)?;
        let error = reader.int().map_err(|_| Malformed::Frame)?;
        Ok(match (first, error) {
            (EVENT_XID, _) => {
                self.events += 1;
                None
            }
            (_, 0 | NODE_EXISTS) => Some(ReplyKind::Answered),
            (_, NO_NODE) => Some(ReplyKind::Nil),
            _ => {
                self.error = format!("CODE({error})");
                Some(ReplyKind::Error)
            }
        })
    }

    /// How many events there were.
    #[must_use]
    pub fn events(&self) -> usize {
        self.events
    }

    /// The code of the error that was the last answer.
    #[must_use]
    pub fn error_word(&self) -> &str {
        &self.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_doors::zookeeper::wire::jute::Frame;
    use quorate_kernel::rope::Rope;

    fn session(timeout: i32) -> Frame {
        let mut frame = Frame::new();
        frame.int(0);
        frame.int(timeout);
        frame.long(7);
        frame.buffer(&[1; 16]);
        frame.boolean(false);
        frame
    }

    fn answer(xid: i32, error: i32, body: &[u8]) -> Frame {
        let mut frame = Frame::new();
        frame.int(xid);
        frame.long(3);
        frame.int(error);
        if !body.is_empty() {
            frame.buffer(body);
        }
        frame
    }

    fn stream(frames: impl IntoIterator<Item = Frame>) -> Vec<u8> {
        let mut out = Rope::default();
        frames.into_iter().for_each(|frame| frame.send(&mut out));
        out.to_bytes().to_vec()
    }

    /// All that is told of a stream that comes in pieces of this many bytes.
    fn told(bytes: &[u8], piece: usize) -> Result<Vec<(ReplyKind, String)>, Malformed> {
        let mut frames = Frames::default();
        let mut all = Vec::new();
        for mut input in bytes.chunks(piece) {
            while let Some(reply) = frames.next(&mut input)? {
                let word = if reply == ReplyKind::Error { frames.error_word() } else { "" };
                all.push((reply, word.to_owned()));
            }
        }
        Ok(all)
    }

    #[test]
    fn answers_are_told_apart_at_any_cut() {
        let all = [
            session(30_000),
            answer(1, 0, &[5; 100]),
            answer(2, 0, &[]),
            answer(EVENT_XID, 0, b"an event is no answer"),
            answer(3, NO_NODE, &[]),
            answer(4, NODE_EXISTS, &[]),
            answer(5, -103, &[]),
        ];
        let bytes = stream(all);
        let expected = [
            (ReplyKind::Done, ""),
            (ReplyKind::Answered, ""),
            (ReplyKind::Answered, ""),
            (ReplyKind::Nil, ""),
            (ReplyKind::Answered, ""),
            (ReplyKind::Error, "CODE(-103)"),
        ];
        let expected = expected.map(|(reply, word)| (reply, word.to_owned()));
        for piece in [1, 3, 4, 20, 21, 64, bytes.len()] {
            assert_eq!(told(&bytes, piece).as_deref(), Ok(&expected[..]), "pieces of {piece}");
        }
    }

    #[test]
    fn a_session_that_is_refused_is_an_error() {
        let told = told(&stream([session(0)]), 1000);
        assert_eq!(told, Ok(vec![(ReplyKind::Error, "NO_SESSION".to_owned())]));
    }

    #[test]
    fn frames_of_wrong_lengths_are_refused() {
        for length in [-1, 15, JUTE_FRAME_BYTES_MAX as i32 + 1] {
            let bytes = [&length.to_be_bytes()[..], &[0; 16]].concat();
            assert_eq!(told(&bytes, 1000), Err(Malformed::Frame), "{length}");
        }
    }
}
