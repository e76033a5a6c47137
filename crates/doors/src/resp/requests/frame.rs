//! A whole request: its bytes, and where its arguments lie in them.

use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

/// How many arguments a command has room for without an allocation.
const ROOM: usize = 8;

/// The longest command that is copied to stand alone: a longer one is much of what it keeps alive.
const ALONE_BYTES_MAX: usize = 16 * 1024;

/// One command of a client. The arguments share the bytes that were read; none is copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    bytes: Bytes,
    spans: Spans,
}

impl Command {
    /// A command whose arguments lie at these places of `bytes`.
    pub(crate) fn new(bytes: Bytes, spans: Spans) -> Command {
        Command { bytes, spans }
    }

    /// How many arguments there are, the command's name included.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // A parsed command always has its name.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// How many bytes the command keeps alive: of input, and of what is noted of many arguments.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len() + self.spans.room()
    }

    /// Copies a short command out of all that was read with it: it waits for long, and that would
    /// stay as long.
    pub(crate) fn stand_alone(&mut self) {
        if self.bytes.len() <= ALONE_BYTES_MAX {
            self.bytes = Bytes::copy_from_slice(&self.bytes);
        }
    }

    /// An argument.
    ///
    /// # Panics
    /// There is no such argument.
    #[must_use]
    pub fn arg(&self, index: usize) -> &[u8] {
        &self.bytes[self.spans.get(index)]
    }

    /// An argument as shared bytes.
    ///
    /// # Panics
    /// There is no such argument.
    #[must_use]
    pub fn shared(&self, index: usize) -> Bytes {
        self.bytes.slice(self.spans.get(index))
    }

    /// The arguments in order, the command's name first.
    pub fn args(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.arg(index))
    }
}

/// Where the arguments of a command lie in its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans {
    few: [(u32, u32); ROOM],
    many: Vec<(u32, u32)>,
    count: u32,
}

impl Spans {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    /// How many bytes of memory they take beside the room for a few.
    pub(crate) fn room(&self) -> usize {
        self.many.capacity() * size_of::<(u32, u32)>()
    }

    /// Adds the place of the next argument. Commands are far shorter than 4 GiB.
    pub(crate) fn push(&mut self, start: usize, end: usize) {
        let span = (start as u32, end as u32);
        match self.few.get_mut(self.count as usize) {
            Some(slot) => *slot = span,
            None => self.many.push(span),
        }
        self.count += 1;
    }

    fn get(&self, index: usize) -> Range<usize> {
        assert!(index < self.len(), "the command has no argument {index}");
        let (start, end) = match self.few.get(index) {
            Some(span) => *span,
            None => self.many[index - ROOM],
        };
        start as usize..end as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_short_command_can_stand_alone() {
        for (length, stands) in [(100, true), (ALONE_BYTES_MAX + 1, false)] {
            let read = Bytes::from(vec![b'a'; 64 * 1024]);
            let mut spans = Spans::default();
            spans.push(1, length);
            let mut command = Command::new(read.slice(..length), spans);
            let before = command.shared(0);
            command.stand_alone();
            assert_eq!(command.shared(0), before);
            assert_eq!(command.shared(0).as_ptr() != before.as_ptr(), stands);
        }
    }

    #[test]
    fn arguments_beyond_the_inline_room_are_found() {
        let mut spans = Spans::default();
        let text: Vec<u8> = (b'a'..=b'z').collect();
        for at in 0..text.len() {
            spans.push(at, at + 1);
        }
        let command = Command::new(Bytes::from(text), spans);
        assert_eq!(command.len(), 26);
        for (index, letter) in (b'a'..=b'z').enumerate() {
            assert_eq!(command.arg(index), [letter]);
            assert_eq!(command.shared(index), [letter][..]);
        }
        assert_eq!(command.args().count(), 26);
        assert!(command.size() >= 26 + (26 - ROOM) * 8, "their places count");
    }
}
