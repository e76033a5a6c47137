//! Replies: the encoder of both protocol versions, and the replies commands give.

use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt::Write;
use quorate_kernel::rope::Rope;

/// A version of the protocol. A connection starts with the second and changes with `HELLO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2: no maps, sets, doubles or a null of its own.
    #[default]
    Resp2,
    /// Adds maps, sets, doubles and one null to RESP2; asked for with `HELLO 3`.
    Resp3,
}

impl Protocol {
    /// The number a client names it by.
    #[must_use]
    pub fn number(self) -> i64 {
        match self {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }
}

/// Writes replies in one version of the protocol.
pub struct Encoder<'a> {
    out: &'a mut Rope,
    protocol: Protocol,
}

/// The decimal digits of a number, without an allocation.
struct Digits {
    text: [u8; 20],
    used: usize,
}

impl Digits {
    fn new(value: i64) -> Digits {
        let mut digits = Digits { text: [0; 20], used: 0 };
        let mut rest = value.unsigned_abs();
        loop {
            digits.push(b'0' + (rest % 10) as u8);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            digits.push(b'-');
        }
        digits
    }

    fn push(&mut self, byte: u8) {
        self.used += 1;
        self.text[20 - self.used] = byte;
    }

    fn as_slice(&self) -> &[u8] {
        &self.text[20 - self.used..]
    }
}

impl<'a> Encoder<'a> {
    /// An encoder that appends to `out`.
    pub fn new(out: &'a mut Rope, protocol: Protocol) -> Encoder<'a> {
        Encoder { out, protocol }
    }

    /// The version it writes.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn is_3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    fn head(&mut self, kind: u8, number: i64) {
        let digits = Digits::new(number);
        let digits = digits.as_slice();
        let mut line = [0; 23];
        let end = digits.len() + 1;
        line[0] = kind;
        line[1..end].copy_from_slice(digits);
        line[end..end + 2].copy_from_slice(b"\r\n");
        self.out.push_slice(&line[..end + 2]);
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push_slice(&[kind]);
        for (n, piece) in text.split(|byte| matches!(byte, b'\r' | b'\n')).enumerate() {
            if n > 0 {
                self.out.push_slice(b" ");
            }
            self.out.push_slice(piece);
        }
        self.out.push_slice(b"\r\n");
    }

    /// A short text without line ends, such as `OK`.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error; its first word is the code clients look at. Line ends become blanks.
    pub fn error(&mut self, text: &str) {
        self.line(b'-', text.as_bytes());
    }

    /// A whole number.
    pub fn integer(&mut self, value: i64) {
        self.head(b':', value);
    }

    /// A string of bytes, copied.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len() as i64);
        self.out.push_slice(bytes);
        self.out.push_slice(b"\r\n");
    }

    /// A string of bytes, shared if it is long.
    pub fn shared(&mut self, bytes: Bytes) {
        self.head(b'$', bytes.len() as i64);
        self.out.push(bytes);
        self.out.push_slice(b"\r\n");
    }

    /// No value.
    pub fn null(&mut self) {
        self.out.push_slice(if self.is_3() { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// No list, which version 2 tells from no value.
    pub fn null_array(&mut self) {
        self.out.push_slice(if self.is_3() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// The start of a list of this many replies.
    pub fn array(&mut self, count: usize) {
        self.head(b'*', count as i64);
    }

    /// The start of a map of this many pairs; a flat list in version 2.
    pub fn map(&mut self, pairs: usize) {
        if self.is_3() {
            self.head(b'%', pairs as i64);
        } else {
            self.array(pairs * 2);
        }
    }

    /// The start of a set of this many replies; a list in version 2.
    pub fn set(&mut self, count: usize) {
        self.head(if self.is_3() { b'~' } else { b'*' }, count as i64);
    }

    /// The start of a message nobody asked for; a list in version 2.
    pub fn push(&mut self, count: usize) {
        self.head(if self.is_3() { b'>' } else { b'*' }, count as i64);
    }

    /// True or false; 1 or 0 in version 2.
    pub fn boolean(&mut self, value: bool) {
        match (self.is_3(), value) {
            (true, true) => self.out.push_slice(b"#t\r\n"),
            (true, false) => self.out.push_slice(b"#f\r\n"),
            (false, _) => self.integer(i64::from(value)),
        }
    }

    /// A floating point number; its digits as a string in version 2.
    pub fn double(&mut self, value: f64) {
        let mut text = String::new();
        match value {
            _ if value.is_nan() => text.push_str("nan"),
            _ if value.is_infinite() => text.push_str(if value > 0.0 { "inf" } else { "-inf" }),
            _ => write!(text, "{value}").expect("writing to a string cannot fail"),
        }
        if self.is_3() {
            self.line(b',', text.as_bytes());
        } else {
            self.bulk(text.as_bytes());
        }
    }

    /// A whole number of any length, as its digits; a string in version 2.
    pub fn big_number(&mut self, digits: &str) {
        if self.is_3() {
            self.line(b'(', digits.as_bytes());
        } else {
            self.bulk(digits.as_bytes());
        }
    }

    /// A text for people; a plain string in version 2.
    pub fn verbatim(&mut self, text: &str) {
        if self.is_3() {
            self.head(b'=', text.len() as i64 + 4);
            self.out.push_slice(b"txt:");
            self.out.push_slice(text.as_bytes());
            self.out.push_slice(b"\r\n");
        } else {
            self.bulk(text.as_bytes());
        }
    }
}

/// The reply of a command, kept until all earlier ones of the connection were written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CommandReply {
    /// A short text.
    Simple(&'static str),
    /// A whole number.
    Integer(i64),
    /// A string, or no value.
    Bulk(Option<Bytes>),
    /// A list of strings and missing values.
    Values(Vec<Option<Bytes>>),
    /// A list of keys.
    Keys(Vec<Bytes>),
    /// A page of a scan: where to go on, and its keys.
    Page(u64, Vec<Bytes>),
    /// A context and the values that it covers.
    Siblings(Bytes, Vec<Bytes>),
    /// The replies of the commands of a transaction.
    List(Vec<CommandReply>),
    /// The null array: a transaction that was not done.
    NoList,
    /// Its code and text, without the leading minus.
    Error(String),
    /// A reply that was already encoded.
    Encoded(Bytes),
}

impl CommandReply {
    /// The answer `+OK`.
    pub(crate) const OK: CommandReply = CommandReply::Simple("OK");

    /// An answer built with an encoder of its own.
    pub(crate) fn encoded(
        protocol: Protocol,
        build: impl FnOnce(&mut Encoder<'_>),
    ) -> CommandReply {
        let mut rope = Rope::default();
        build(&mut Encoder::new(&mut rope, protocol));
        CommandReply::Encoded(rope.to_bytes())
    }

    /// How many bytes the answer keeps alive while it waits, what its lists take included.
    pub(crate) fn size(&self) -> usize {
        match self {
            CommandReply::Simple(_)
            | CommandReply::Integer(_)
            | CommandReply::Bulk(None)
            | CommandReply::NoList => 0,
            CommandReply::Bulk(Some(bytes)) | CommandReply::Encoded(bytes) => bytes.len(),
            // What the list takes is counted with the command.
            CommandReply::Values(values) => values.iter().flatten().map(Bytes::len).sum(),
            CommandReply::Keys(keys) | CommandReply::Page(_, keys) => listed(keys),
            CommandReply::Siblings(context, values) => context.len() + listed(values),
            CommandReply::List(answers) => {
                let room = answers.len() * size_of::<CommandReply>();
                room + answers.iter().map(CommandReply::size).sum::<usize>()
            }
            CommandReply::Error(text) => text.len(),
        }
    }

    /// Writes the answer.
    pub(crate) fn write(self, out: &mut Encoder<'_>) {
        match self {
            CommandReply::Simple("OK") => out.out.push_slice(b"+OK\r\n"),
            CommandReply::Simple(text) => out.simple(text),
            CommandReply::Integer(value) => out.integer(value),
            CommandReply::Bulk(None) => out.null(),
            CommandReply::NoList => out.null_array(),
            CommandReply::Bulk(Some(bytes)) => out.shared(bytes),
            CommandReply::Values(values) => {
                out.array(values.len());
                for value in values {
                    match value {
                        Some(bytes) => out.shared(bytes),
                        None => out.null(),
                    }
                }
            }
            CommandReply::Keys(keys) => keys_array(out, keys),
            CommandReply::Siblings(context, values) => {
                out.array(2);
                out.shared(context);
                keys_array(out, values);
            }
            CommandReply::Page(next, keys) => {
                let mut cursor = String::new();
                write!(cursor, "{next}").expect("writing to a string cannot fail");
                out.array(2);
                out.bulk(cursor.as_bytes());
                keys_array(out, keys);
            }
            CommandReply::List(answers) => {
                out.array(answers.len());
                answers.into_iter().for_each(|answer| answer.write(out));
            }
            CommandReply::Error(text) => out.error(&text),
            CommandReply::Encoded(bytes) => out.out.push(bytes),
        }
    }
}

/// How many bytes a list of keys or values keeps alive.
fn listed(list: &[Bytes]) -> usize {
    size_of_val(list) + list.iter().map(Bytes::len).sum::<usize>()
}

fn keys_array(out: &mut Encoder<'_>, keys: Vec<Bytes>) {
    out.array(keys.len());
    for key in keys {
        out.shared(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(build: impl Fn(&mut Encoder<'_>)) -> [String; 2] {
        [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
            let mut rope = Rope::default();
            build(&mut Encoder::new(&mut rope, protocol));
            String::from_utf8_lossy(&rope.to_bytes()).into_owned()
        })
    }

    #[test]
    fn every_kind_in_both_versions() {
        let table: [([String; 2], &str, &str); 15] = [
            (both(|e| e.simple("OK")), "+OK\r\n", "+OK\r\n"),
            (both(|e| e.error("ERR a\r\nb")), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (
                both(|e| e.integer(i64::MIN)),
                ":-9223372036854775808\r\n",
                ":-9223372036854775808\r\n",
            ),
            (both(|e| e.bulk(b"a\r\nb")), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"),
            (both(|e| e.shared(Bytes::new())), "$0\r\n\r\n", "$0\r\n\r\n"),
            (both(|e| e.null()), "$-1\r\n", "_\r\n"),
            (both(|e| e.null_array()), "*-1\r\n", "_\r\n"),
            (both(|e| e.array(0)), "*0\r\n", "*0\r\n"),
            (both(|e| e.map(7)), "*14\r\n", "%7\r\n"),
            (both(|e| e.set(2)), "*2\r\n", "~2\r\n"),
            (both(|e| e.push(2)), "*2\r\n", ">2\r\n"),
            (both(|e| e.boolean(true)), ":1\r\n", "#t\r\n"),
            (both(|e| e.double(-0.5)), "$4\r\n-0.5\r\n", ",-0.5\r\n"),
            (both(|e| e.big_number("12")), "$2\r\n12\r\n", "(12\r\n"),
            (both(|e| e.verbatim("a b")), "$3\r\na b\r\n", "=7\r\ntxt:a b\r\n"),
        ];
        for (got, second, third) in table {
            assert_eq!(got, [second, third]);
        }
        assert_eq!(both(|e| e.double(f64::INFINITY))[1], ",inf\r\n");
        assert_eq!(both(|e| e.double(f64::NEG_INFINITY))[1], ",-inf\r\n");
        assert_eq!(both(|e| e.double(f64::NAN))[1], ",nan\r\n");
    }

    #[test]
    fn a_page_carries_the_whole_cursor() {
        let page = || CommandReply::Page(u64::MAX, alloc::vec![Bytes::from_static(b"k")]);
        let text = "*2\r\n$20\r\n18446744073709551615\r\n*1\r\n$1\r\nk\r\n";
        assert_eq!(both(|e| page().write(e))[0], text);
        assert_eq!(page().size(), 1 + size_of::<Bytes>());
    }
}
