//! The client's side: commands in, replies out. For the command line, load generators, the
//! simulator and tests.

use alloc::vec::Vec;
use bytes::{Buf, Bytes, BytesMut};
use quorate_kernel::limits::VALUE_BYTES_MAX;
use thiserror::Error;

/// The most elements of one list that a reply may announce.
const ELEMENTS_MAX: i64 = 16 * 1024 * 1024;
/// The most lists within lists.
const DEPTH_MAX: usize = 32;
/// The longest line of a reply that is no string of announced length.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// How many elements get room before they arrive.
const ROOM: usize = 64;

/// A reply of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum RespReply {
    /// A short text.
    Simple(Bytes),
    /// An error; its first word is a code.
    Error(Bytes),
    /// A whole number.
    Integer(i64),
    /// A string of bytes.
    Bulk(Bytes),
    /// No value, or no list.
    Null,
    /// A list.
    Array(Vec<RespReply>),
    /// A map, in the order sent.
    Map(Vec<(RespReply, RespReply)>),
    /// A set, in the order sent.
    Set(Vec<RespReply>),
    /// A message nobody asked for.
    Push(Vec<RespReply>),
    /// True or false.
    Boolean(bool),
    /// A floating point number.
    Double(f64),
    /// A whole number of any length, as its digits.
    BigNumber(Bytes),
    /// A text and its format, such as `txt`.
    Verbatim {
        /// Three letters.
        format: Bytes,
        /// What it says, without the format and the colon.
        text: Bytes,
    },
}

impl RespReply {
    /// The bytes of a string, short text, verbatim text or error.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&Bytes> {
        match self {
            RespReply::Simple(text)
            | RespReply::Error(text)
            | RespReply::Bulk(text)
            | RespReply::BigNumber(text)
            | RespReply::Verbatim { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The first word of an error, which tells what became of the command.
    #[must_use]
    pub fn error_code(&self) -> Option<&[u8]> {
        let RespReply::Error(text) = self else { return None };
        text.split(|byte| *byte == b' ').next()
    }
}

/// The server sent something that is no reply. The connection cannot be read on; what became of the
/// commands still unanswered is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// A reply starts with a byte that no kind of reply has.
    #[error("no reply starts with byte {0:#04x}")]
    Kind(u8),
    /// A number is no number.
    #[error("malformed number in a reply")]
    Number,
    /// A length is negative or over the limit.
    #[error("length in a reply is negative or over the limit")]
    Length,
    /// A string is not followed by a line end, or a text has no format.
    #[error("malformed string in a reply")]
    String,
    /// Lists are nested too deeply.
    #[error("reply nested deeper than {DEPTH_MAX} lists")]
    Depth,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Array,
    Map,
    Set,
    Push,
    /// A map of remarks before a reply; read and dropped.
    Attribute,
}

#[derive(Debug)]
struct Open {
    kind: Kind,
    missing: usize,
    items: Vec<RespReply>,
}

/// Reads the replies of one connection. Every byte is looked at once, however it is split.
#[derive(Debug, Default)]
pub struct ReplyParser {
    open: Vec<Open>,
    /// The string being waited for: its length and whether it is a verbatim text.
    bulk: Option<(usize, bool)>,
    /// How far the current line was searched for its end.
    searched: usize,
}

enum Element {
    Whole(RespReply),
    Opens(Kind, usize),
}

impl ReplyParser {
    /// Takes the next whole reply off the front of `input`; `None` if there is none yet.
    ///
    /// # Errors
    /// The input is no reply; the connection cannot be read on.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<RespReply>, ReplyError> {
        loop {
            let Some(element) = self.element(input)? else { return Ok(None) };
            let mut reply = match element {
                Element::Whole(reply) => reply,
                Element::Opens(kind, count) => {
                    if self.open.len() == DEPTH_MAX {
                        return Err(ReplyError::Depth);
                    }
                    let missing = if kind == Kind::Map || kind == Kind::Attribute {
                        count * 2
                    } else {
                        count
                    };
                    let items = Vec::with_capacity(missing.min(ROOM));
                    self.open.push(Open { kind, missing, items });
                    match self.close() {
                        Some(reply) => reply,
                        None => continue,
                    }
                }
            };
            loop {
                let Some(list) = self.open.last_mut() else { return Ok(Some(reply)) };
                list.items.push(reply);
                list.missing -= 1;
                match self.close() {
                    Some(whole) => reply = whole,
                    None => break,
                }
            }
        }
    }

    /// Takes the innermost list if it is whole; a remark is dropped.
    fn close(&mut self) -> Option<RespReply> {
        let Open { kind, items, .. } = self.open.pop_if(|list| list.missing == 0)?;
        match kind {
            Kind::Array => Some(RespReply::Array(items)),
            Kind::Set => Some(RespReply::Set(items)),
            Kind::Push => Some(RespReply::Push(items)),
            Kind::Map => {
                let mut items = items.into_iter();
                let mut pairs = Vec::with_capacity(items.len() / 2);
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    pairs.push((key, value));
                }
                Some(RespReply::Map(pairs))
            }
            Kind::Attribute => None,
        }
    }

    fn element(&mut self, input: &mut BytesMut) -> Result<Option<Element>, ReplyError> {
        if let Some((length, verbatim)) = self.bulk {
            return self.string(length, verbatim, input);
        }
        let Some(mut line) = self.line(input)? else { return Ok(None) };
        let kind = line[0];
        line.advance(1);
        let opens = |kind| Ok(Some(Element::Opens(kind, count(&line)?)));
        let reply = match kind {
            b'+' => RespReply::Simple(line),
            b'-' => RespReply::Error(line),
            b':' => RespReply::Integer(integer(&line)?),
            b'$' | b'*' if line == b"-1"[..] => RespReply::Null,
            b'$' | b'=' => {
                let length = integer(&line)?;
                let length = usize::try_from(length).map_err(|_| ReplyError::Length)?;
                if length > VALUE_BYTES_MAX + 4 {
                    return Err(ReplyError::Length);
                }
                self.bulk = Some((length, kind == b'='));
                return self.string(length, kind == b'=', input);
            }
            b'*' => return opens(Kind::Array),
            b'%' => return opens(Kind::Map),
            b'~' => return opens(Kind::Set),
            b'>' => return opens(Kind::Push),
            b'|' => return opens(Kind::Attribute),
            b'_' => RespReply::Null,
            b'#' => match &line[..] {
                b"t" => RespReply::Boolean(true),
                b"f" => RespReply::Boolean(false),
                _ => return Err(ReplyError::Number),
            },
            b',' => RespReply::Double(double(&line)?),
            b'(' => RespReply::BigNumber(line),
            other => return Err(ReplyError::Kind(other)),
        };
        Ok(Some(Element::Whole(reply)))
    }

    /// Takes a line without its end; it has at least one byte.
    fn line(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, ReplyError> {
        const KINDS: &[u8] = b"+-:$=*%~>|_#,(";
        let Some(first) = input.first() else { return Ok(None) };
        if !KINDS.contains(first) {
            return Err(ReplyError::Kind(*first));
        }
        match input[self.searched..].iter().position(|byte| *byte == b'\n') {
            Some(found) => {
                let end = self.searched + found;
                self.searched = 0;
                if end < 2 || input[end - 1] != b'\r' {
                    return Err(ReplyError::String);
                }
                let mut line = input.split_to(end + 1).freeze();
                line.truncate(end - 1);
                Ok(Some(line))
            }
            None if input.len() > LINE_BYTES_MAX => Err(ReplyError::Length),
            None => {
                self.searched = input.len();
                Ok(None)
            }
        }
    }

    fn string(
        &mut self,
        length: usize,
        verbatim: bool,
        input: &mut BytesMut,
    ) -> Result<Option<Element>, ReplyError> {
        if input.len() < length + 2 {
            return Ok(None);
        }
        self.bulk = None;
        let mut text = input.split_to(length).freeze();
        if &input[..2] != b"\r\n" {
            return Err(ReplyError::String);
        }
        input.advance(2);
        if !verbatim {
            return Ok(Some(Element::Whole(RespReply::Bulk(text))));
        }
        if text.get(3) != Some(&b':') {
            return Err(ReplyError::String);
        }
        let format = text.split_to(3);
        text.advance(1);
        Ok(Some(Element::Whole(RespReply::Verbatim { format, text })))
    }
}

fn text(bytes: &[u8]) -> Result<&str, ReplyError> {
    core::str::from_utf8(bytes).map_err(|_| ReplyError::Number)
}

fn integer(bytes: &[u8]) -> Result<i64, ReplyError> {
    text(bytes)?.parse().map_err(|_| ReplyError::Number)
}

fn double(bytes: &[u8]) -> Result<f64, ReplyError> {
    text(bytes)?.parse().map_err(|_| ReplyError::Number)
}

fn count(bytes: &[u8]) -> Result<usize, ReplyError> {
    match integer(bytes)? {
        count @ 0..=ELEMENTS_MAX => Ok(count as usize),
        _ => Err(ReplyError::Length),
    }
}

/// Appends a command to `out` as an array of bulk strings.
pub fn write_command(out: &mut BytesMut, args: &[&[u8]]) {
    let bytes: usize = args.iter().map(|arg| arg.len() + 16).sum();
    out.reserve(bytes + 16);
    write_head(out, b'*', args.len());
    for arg in args {
        write_head(out, b'$', arg.len());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_head(out: &mut BytesMut, kind: u8, number: usize) {
    let mut line = [0; 24];
    let mut at = line.len() - 2;
    line[at..].copy_from_slice(b"\r\n");
    let mut rest = number;
    loop {
        at -= 1;
        line[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    line[at - 1] = kind;
    out.extend_from_slice(&line[at - 1..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn bulk(text: &'static str) -> RespReply {
        RespReply::Bulk(Bytes::from_static(text.as_bytes()))
    }

    fn all(input: &[u8], step: usize) -> Result<Vec<RespReply>, ReplyError> {
        let (mut parser, mut buffer, mut replies) =
            (ReplyParser::default(), BytesMut::new(), Vec::new());
        for piece in input.chunks(step) {
            buffer.extend_from_slice(piece);
            while let Some(reply) = parser.next(&mut buffer)? {
                replies.push(reply);
            }
        }
        Ok(replies)
    }

    #[test]
    fn replies_of_every_kind_at_every_split() {
        let input = b"+OK\r\n-ERR no\r\n:-5\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n_\r\n*0\r\n\
            *2\r\n$1\r\na\r\n*1\r\n:1\r\n%1\r\n+k\r\n~1\r\n#t\r\n|1\r\n+x\r\n:9\r\n,1.5\r\n(123\r\n\
            =7\r\ntxt:abc\r\n>1\r\n#f\r\n,inf\r\n*1\r\n|1\r\n+x\r\n%0\r\n:7\r\n";
        let simple = |text: &'static str| RespReply::Simple(Bytes::from_static(text.as_bytes()));
        let expected = vec![
            simple("OK"),
            RespReply::Error(Bytes::from_static(b"ERR no")),
            RespReply::Integer(-5),
            bulk("a\r\n"),
            RespReply::Null,
            RespReply::Null,
            RespReply::Null,
            RespReply::Array(vec![]),
            RespReply::Array(vec![bulk("a"), RespReply::Array(vec![RespReply::Integer(1)])]),
            RespReply::Map(vec![(simple("k"), RespReply::Set(vec![RespReply::Boolean(true)]))]),
            RespReply::Double(1.5),
            RespReply::BigNumber(Bytes::from_static(b"123")),
            RespReply::Verbatim {
                format: Bytes::from_static(b"txt"),
                text: Bytes::from_static(b"abc"),
            },
            RespReply::Push(vec![RespReply::Boolean(false)]),
            RespReply::Double(f64::INFINITY),
            RespReply::Array(vec![RespReply::Integer(7)]),
        ];
        for step in 1..input.len() {
            assert_eq!(all(input, step).as_ref(), Ok(&expected), "step {step}");
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        let table: [(&[u8], ReplyError); 9] = [
            (b"hello\r\n", ReplyError::Kind(b'h')),
            (b":x\r\n", ReplyError::Number),
            (b"$-2\r\n", ReplyError::Length),
            (b"$99999999999\r\n", ReplyError::Length),
            (b"*-3\r\n", ReplyError::Length),
            (b"$1\r\nabc", ReplyError::String),
            (b"=2\r\nab\r\n", ReplyError::String),
            (b"#x\r\n", ReplyError::Number),
            (b"\n", ReplyError::Kind(b'\n')),
        ];
        for (input, error) in table {
            assert_eq!(all(input, input.len()), Err(error), "{input:?}");
        }
        assert_eq!(all(&b"*1\r\n".repeat(40), 7), Err(ReplyError::Depth));
        assert_eq!(all(&[b'+'; LINE_BYTES_MAX + 2], 1000), Err(ReplyError::Length));
    }

    #[test]
    fn commands_are_arrays_of_strings() {
        let mut out = BytesMut::new();
        write_command(&mut out, &[b"SET", b"k", b"0123456789"]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n0123456789\r\n"[..]);
        let error = RespReply::Error(Bytes::from_static(b"NOQUORUM 1 of 2"));
        assert_eq!(error.error_code(), Some(&b"NOQUORUM"[..]));
        assert_eq!(RespReply::Null.error_code(), None);
        assert_eq!(error.as_bytes().map(|text| text.len()), Some(15));
    }
}
