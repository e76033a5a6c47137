//! Counts replies in a stream of RESP2 bytes without keeping or copying them.
//!
//! The doors have a RESP client with a parser of its own that hands out whole replies. This one is
//! for the load generator alone: it allocates nothing, keeps no body, and can stop and go on at any
//! byte, so one read buffer serves all connections and a reply costs a few tens of nanoseconds.
//! It still checks the form: type, length, number, and both ends of every line and body.

/// The longest body a server may announce, as in Redis: 512 MiB.
const BODY_BYTES_MAX: usize = 512 * 1024 * 1024;
/// How much of a line is kept; what is longer is skipped.
const LINE_BYTES_MAX: usize = 48;

/// One reply, reduced to what a measurement needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// `+OK`.
    Done,
    /// Another status line.
    Status,
    /// A number.
    Integer,
    /// A value.
    Value,
    /// No value.
    Nil,
    /// It was done, on a wire whose answers do not tell what kind of thing.
    Answered,
    /// An error; [`Scanner::error_word`] has its first word until the next reply.
    Error,
}

/// A server's bytes that are no RESP2 reply to a simple command; the connection is useless now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A reply starts with a byte that announces no type a simple command is answered with.
    #[error("a reply starts with byte {0:#04x}")]
    Kind(u8),
    /// A line ended without a carriage return.
    #[error("a line ended without a carriage return")]
    Line,
    /// A length or number is none.
    #[error("a length or number is malformed")]
    Number,
    /// A value was not followed by the end of a line, so its length was wrong.
    #[error("a value is longer or shorter than announced")]
    Body,
    /// A frame has a length that no frame has, or ends before its header does.
    #[error("a frame has a wrong length")]
    Frame,
    /// A reply came although no command was waiting for one.
    #[error("a reply came that nothing had asked for")]
    Unasked,
}

#[derive(Clone, Copy, Debug)]
enum Position {
    /// Before the first byte of a reply.
    Start,
    /// In the line of a reply of this type.
    Line { kind: u8 },
    /// In the body of a value, its closing two bytes included in what is left.
    Body { left: usize },
}

/// Where the stream of one connection stands.
#[derive(Clone, Debug)]
pub struct Scanner {
    position: Position,
    line: [u8; LINE_BYTES_MAX],
    line_len: usize,
    last: u8,
}

impl Default for Scanner {
    fn default() -> Scanner {
        Scanner { position: Position::Start, line: [0; LINE_BYTES_MAX], line_len: 0, last: 0 }
    }
}

impl Scanner {
    /// The next reply that ends within `input`, which is moved past what was looked at.
    ///
    /// # Errors
    /// The bytes are no reply; nothing after them can be understood.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<ReplyKind>, Malformed> {
        while !input.is_empty() {
            let reply = match self.position {
                Position::Start => self.start(input)?,
                Position::Line { kind } => self.line(kind, input)?,
                Position::Body { left } => self.body(left, input)?,
            };
            if reply.is_some() {
                self.position = Position::Start;
                return Ok(reply);
            }
        }
        Ok(None)
    }

    /// The first word of the error that was the last reply, for example `ERR`.
    #[must_use]
    pub fn error_word(&self) -> &str {
        let word = self.line[..self.line_len].split(|&byte| byte == b' ').next();
        let word = word.and_then(|word| core::str::from_utf8(word).ok()).unwrap_or("");
        if word.is_empty() { "UNREADABLE" } else { word }
    }

    fn start(&mut self, input: &mut &[u8]) -> Result<Option<ReplyKind>, Malformed> {
        let kind = input[0];
        if !matches!(kind, b'+' | b'-' | b':' | b'$') {
            return Err(Malformed::Kind(kind));
        }
        *input = &input[1..];
        self.line_len = 0;
        self.last = 0;
        self.position = Position::Line { kind };
        Ok(None)
    }

    fn line(&mut self, kind: u8, input: &mut &[u8]) -> Result<Option<ReplyKind>, Malformed> {
        let end = input.iter().position(|&byte| byte == b'\n');
        let part = &input[..end.unwrap_or(input.len())];
        if let Some(&last) = part.last() {
            let kept = part.len().min(LINE_BYTES_MAX - self.line_len);
            self.line[self.line_len..self.line_len + kept].copy_from_slice(&part[..kept]);
            self.line_len += kept;
            self.last = last;
        }
        let Some(end) = end else {
            *input = &[];
            return Ok(None);
        };
        *input = &input[end + 1..];
        if self.last != b'\r' {
            return Err(Malformed::Line);
        }
        if self.line[self.line_len - 1] == b'\r' {
            self.line_len -= 1;
        }
        let line = &self.line[..self.line_len];
        match kind {
            b'+' => Ok(Some(if line == b"OK" { ReplyKind::Done } else { ReplyKind::Status })),
            b'-' => Ok(Some(ReplyKind::Error)),
            b':' => number(line).map(|_| Some(ReplyKind::Integer)),
            _ => {
                if line == b"-1" {
                    return Ok(Some(ReplyKind::Nil));
                }
                let length = number(line)?.filter(|&length| length <= BODY_BYTES_MAX);
                let left = length.ok_or(Malformed::Number)? + 2;
                self.position = Position::Body { left };
                Ok(None)
            }
        }
    }

    fn body(&mut self, left: usize, input: &mut &[u8]) -> Result<Option<ReplyKind>, Malformed> {
        let skipped = input.len().min(left.saturating_sub(2));
        *input = &input[skipped..];
        let mut left = left - skipped;
        while left <= 2 && left > 0 && !input.is_empty() {
            if input[0] != (if left == 2 { b'\r' } else { b'\n' }) {
                return Err(Malformed::Body);
            }
            *input = &input[1..];
            left -= 1;
        }
        self.position = Position::Body { left };
        Ok((left == 0).then_some(ReplyKind::Value))
    }
}

/// The number in these digits, `None` for a negative or too large one.
fn number(line: &[u8]) -> Result<Option<usize>, Malformed> {
    let (digits, negative) = match line.strip_prefix(b"-") {
        Some(digits) => (digits, true),
        None => (line, false),
    };
    if digits.is_empty() || digits.len() > 19 {
        return Err(Malformed::Number);
    }
    let mut total = 0_u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(Malformed::Number);
        }
        total = total * 10 + u64::from(digit - b'0');
    }
    Ok(usize::try_from(total).ok().filter(|_| !negative))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All replies of a stream that arrives in these pieces, errors with their word.
    fn scan(pieces: &[&[u8]]) -> Result<Vec<(ReplyKind, String)>, Malformed> {
        let mut scanner = Scanner::default();
        let mut replies = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while let Some(reply) = scanner.next(&mut input)? {
                let is_error = reply == ReplyKind::Error;
                let word = if is_error { scanner.error_word() } else { "" };
                replies.push((reply, word.to_owned()));
            }
            assert!(input.is_empty(), "a scanner that wants more has looked at everything");
        }
        Ok(replies)
    }

    const STREAM: &[u8] = b"+OK\r\n$5\r\nab\r\nc\r\n$-1\r\n-NOQUORUM nothing changed\r\n:17\r\n\
        $0\r\n\r\n+PONG\r\n-ERR\r\n:-3\r\n+OK\r\n";

    fn expected() -> Vec<(ReplyKind, String)> {
        [
            (ReplyKind::Done, ""),
            (ReplyKind::Value, ""),
            (ReplyKind::Nil, ""),
            (ReplyKind::Error, "NOQUORUM"),
            (ReplyKind::Integer, ""),
            (ReplyKind::Value, ""),
            (ReplyKind::Status, ""),
            (ReplyKind::Error, "ERR"),
            (ReplyKind::Integer, ""),
            (ReplyKind::Done, ""),
        ]
        .map(|(reply, word)| (reply, word.to_owned()))
        .to_vec()
    }

    #[test]
    fn a_whole_stream_gives_its_replies() {
        assert_eq!(scan(&[STREAM]), Ok(expected()));
    }

    #[test]
    fn any_two_splits_give_the_same_replies() {
        for first in 0..STREAM.len() {
            for second in first..STREAM.len() {
                let pieces = [&STREAM[..first], &STREAM[first..second], &STREAM[second..]];
                assert_eq!(scan(&pieces), Ok(expected()), "split at {first} and {second}");
            }
        }
        let bytes: Vec<&[u8]> = STREAM.chunks(1).collect();
        assert_eq!(scan(&bytes), Ok(expected()));
    }

    #[test]
    fn long_errors_keep_their_first_word() {
        let mut long = b"-UNKNOWNOUTCOME ".to_vec();
        long.extend(std::iter::repeat_n(b'x', 10_000));
        long.extend_from_slice(b"\r\n+OK\r\n");
        let replies = scan(&[&long]).unwrap();
        assert_eq!(replies[0], (ReplyKind::Error, "UNKNOWNOUTCOME".to_owned()));
        assert_eq!(replies[1].0, ReplyKind::Done);
        assert_eq!(scan(&[b"-\r\n"]).unwrap()[0].1, "UNREADABLE");
    }

    #[test]
    fn nonsense_is_refused() {
        let cases: [(&[u8], Malformed); 10] = [
            (b"HTTP/1.1 400\r\n", Malformed::Kind(b'H')),
            (b"*1\r\n", Malformed::Kind(b'*')),
            (b"+OK\n", Malformed::Line),
            (b"+\n", Malformed::Line),
            (b"$x\r\n", Malformed::Number),
            (b"$-2\r\n", Malformed::Number),
            (b"$\r\n", Malformed::Number),
            (b"$99999999999\r\n", Malformed::Number),
            (b":1a\r\n", Malformed::Number),
            (b"$3\r\nabcd\r\n", Malformed::Body),
        ];
        for (input, error) in cases {
            assert_eq!(scan(&[input]), Err(error), "{}", input.escape_ascii());
        }
        assert_eq!(scan(&[b"$3\r\nabc\rx"]), Err(Malformed::Body));
    }
}
