//! What an event of the poller is about.

use mio::Token;

pub(super) const CLUSTER: Token = Token(0);
pub(super) const WAKER: Token = Token(1);
/// The doors of clients have these, in the order of the host's list.
const DOORS: std::ops::Range<usize> = 2..64;
const FIRST: usize = DOORS.end;

/// The kind of a client's connection.
pub(super) const CLIENT: usize = 0;
/// The kind of a connection to another host.
pub(super) const LINK: usize = 1;

/// The token of the listener of a door of clients, by its place in the host's list.
pub(super) fn listener(door: usize) -> Token {
    assert!(door < DOORS.len(), "a host has few doors");
    Token(DOORS.start + door)
}

/// The door of clients whose listener has this token.
pub(super) fn door(token: Token) -> Option<usize> {
    DOORS.contains(&token.0).then(|| token.0 - DOORS.start)
}

/// The token of a connection.
pub(super) fn token(kind: usize, key: usize) -> Token {
    Token(FIRST + (key << 1 | kind))
}

/// The kind and key of a connection's token.
pub(super) fn connection(token: Token) -> Option<(usize, usize)> {
    let number = token.0.checked_sub(FIRST)?;
    Some((number & 1, number >> 1))
}
