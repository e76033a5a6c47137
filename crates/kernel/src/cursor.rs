//! Where listings of keys go on.

use bytes::Bytes;
use core::fmt;

/// Where a listing begins or goes on: in the order of positions, and of the keys that share one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// The position.
    pub position: u64,
    /// Of the keys of that position, those from this one on; all of them if it is empty.
    pub key: Bytes,
}

impl Cursor {
    /// The first key of a position.
    #[must_use]
    pub const fn at(position: u64) -> Cursor {
        Cursor { position, key: Bytes::new() }
    }

    /// Whether it lies between two positions.
    #[must_use]
    pub fn is_position(&self) -> bool {
        self.key.is_empty()
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.position)?;
        if self.is_position() { Ok(()) } else { write!(f, " \"{}\"", self.key.escape_ascii()) }
    }
}
