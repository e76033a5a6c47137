//! Where listings of keys go on.

use bytes::Bytes;
use core::fmt;

/// Where a listing begins or goes on: in the order of tokens, and of the keys that share one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// A hash of the hash space; 0 is its beginning.
    pub token: u64,
    /// Of the keys of that token, those from this one on; all of them if it is empty.
    pub key: Bytes,
}

impl Cursor {
    /// The first key of a token.
    #[must_use]
    pub const fn at(token: u64) -> Cursor {
        Cursor { token, key: Bytes::new() }
    }

    /// Whether it lies between two tokens.
    #[must_use]
    pub fn is_token(&self) -> bool {
        self.key.is_empty()
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.token)?;
        if self.is_token() { Ok(()) } else { write!(f, " \"{}\"", self.key.escape_ascii()) }
    }
}
