//! What comes back on a connection, whichever wire it speaks.

use crate::config::Wire;
use crate::scanner::{Malformed, ReplyKind, Scanner};
use crate::zookeeper::frames::Frames;

/// Where the stream of one connection stands.
#[derive(Clone, Debug)]
pub enum Answers {
    /// In replies of Redis's protocol.
    Resp(Scanner),
    /// In frames of ZooKeeper's.
    ZooKeeper(Frames),
}

impl Answers {
    /// Before the first byte.
    pub fn new(wire: Wire) -> Answers {
        match wire {
            Wire::Resp => Answers::Resp(Scanner::default()),
            Wire::ZooKeeper => Answers::ZooKeeper(Frames::default()),
        }
    }

    /// Before the first byte of another stream.
    pub fn restart(&mut self) {
        match self {
            Answers::Resp(scanner) => *scanner = Scanner::default(),
            Answers::ZooKeeper(frames) => *frames = Frames::default(),
        }
    }

    /// The next answer that ends within `input`, which is moved past what was looked at.
    ///
    /// # Errors
    /// The bytes are no answer; nothing after them can be understood.
    #[inline]
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<ReplyKind>, Malformed> {
        match self {
            Answers::Resp(scanner) => scanner.next(input),
            Answers::ZooKeeper(frames) => frames.next(input),
        }
    }

    /// What the last answer called its error.
    pub fn error_word(&self) -> &str {
        match self {
            Answers::Resp(scanner) => scanner.error_word(),
            Answers::ZooKeeper(frames) => frames.error_word(),
        }
    }
}
