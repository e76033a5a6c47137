//! Inline commands: a line of words, as a person types into a terminal, with quotes as in Redis.

use super::frame::{Command, Spans};
use alloc::vec::Vec;
use bytes::Bytes;

/// Splits a line into words; `None` if its quotes do not match. A word in double quotes may hold
/// `\n`, `\r`, `\t`, `\b`, `\a`, `\xHH` and a backslash before any other byte; a word in single
/// quotes only `\'`. A closing quote must be followed by a blank or the end.
pub(crate) fn split(line: Bytes) -> Option<Command> {
    let line_end = line.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
    let line = line.slice(..line_end);
    if !line.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
        return Some(plain(line));
    }
    let mut words = Words { line: &line, at: 0, text: Vec::with_capacity(line.len()) };
    let mut spans = Spans::default();
    loop {
        while words.peek().is_some_and(is_blank) {
            words.at += 1;
        }
        if words.peek().is_none() {
            return Some(Command::new(words.text.into(), spans));
        }
        let start = words.text.len();
        words.word()?;
        spans.push(start, words.text.len());
    }
}

/// Without quotes the words are the line's own bytes.
fn plain(line: Bytes) -> Command {
    let mut spans = Spans::default();
    let mut start = None;
    for (at, byte) in line.iter().enumerate() {
        match (is_blank(*byte), start) {
            (true, Some(from)) => {
                spans.push(from, at);
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
    }
    if let Some(from) = start {
        spans.push(from, line.len());
    }
    Command::new(line, spans)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0)
}

struct Words<'a> {
    line: &'a [u8],
    at: usize,
    text: Vec<u8>,
}

impl Words<'_> {
    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn word(&mut self) -> Option<()> {
        while let Some(byte) = self.peek() {
            if is_blank(byte) {
                break;
            }
            self.at += 1;
            match byte {
                b'"' => {
                    self.double_quoted()?;
                    break;
                }
                b'\'' => {
                    self.single_quoted()?;
                    break;
                }
                other => self.text.push(other),
            }
        }
        self.peek().is_none_or(is_blank).then_some(())
    }

    fn double_quoted(&mut self) -> Option<()> {
        loop {
            match self.take()? {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                other => self.text.push(other),
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let byte = match self.take()? {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'a' => 7,
            b'x' => match self.line.get(self.at..self.at + 2).and_then(hexadecimal) {
                Some(byte) => {
                    self.at += 2;
                    byte
                }
                None => b'x',
            },
            other => other,
        };
        self.text.push(byte);
        Some(())
    }

    fn single_quoted(&mut self) -> Option<()> {
        loop {
            match self.take()? {
                b'\'' => return Some(()),
                b'\\' if self.peek() == Some(b'\'') => {
                    self.at += 1;
                    self.text.push(b'\'');
                }
                other => self.text.push(other),
            }
        }
    }
}

pub(crate) fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(digits[at]).to_digit(16);
    Some((digit(0)? * 16 + digit(1)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec;

    fn words(line: &'static [u8]) -> Option<Vec<String>> {
        let text = |arg: &[u8]| String::from_utf8_lossy(arg).into_owned();
        split(Bytes::from_static(line)).map(|command| command.args().map(text).collect())
    }

    #[test]
    fn words_are_split_as_redis_splits_them() {
        let table: &[(&[u8], Option<&[&str]>)] = &[
            (b"", Some(&[])),
            (b"\r", Some(&[])),
            (b"PING\r", Some(&["PING"])),
            (b"  set  a\tb  ", Some(&["set", "a", "b"])),
            (b"set 'a b' \"c\\x41\\n\"", Some(&["set", "a b", "cA\n"])),
            (b"\"\\r\\t\\b\\a\\q\\\\\\xzz\"", Some(&["\r\t\u{8}\u{7}q\\xzz"])),
            (b"'it\\'s' '\\n'", Some(&["it's", "\\n"])),
            (b"a\"b c\"", Some(&["ab c"])),
            (b"\"\" ''", Some(&["", ""])),
            (b"'a'b", None),
            (b"\"a\"b", None),
            (b"'a", None),
            (b"\"a", None),
            (b"\"a\\", None),
        ];
        for (line, expected) in table {
            let expected = expected.map(|list| list.iter().map(|w| String::from(*w)).collect());
            assert_eq!(words(line), expected, "{:?}", String::from_utf8_lossy(line));
        }
        assert_eq!(words(b"one"), Some(vec![String::from("one")]));
    }
}
