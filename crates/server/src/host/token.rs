//! What an event of the poller is about.

use mio::Token;

pub(super) const RESP: Token = Token(0);
pub(super) const CLUSTER: Token = Token(1);
pub(super) const WAKER: Token = Token(2);
const FIRST: usize = 8;

/// The kind of a client's connection.
pub(super) const CLIENT: usize = 0;
/// The kind of a connection to another host.
pub(super) const LINK: usize = 1;

/// The token of a connection.
pub(super) fn token(kind: usize, key: usize) -> Token {
    Token(FIRST + (key << 1 | kind))
}

/// The kind and key of a connection's token.
pub(super) fn connection(token: Token) -> Option<(usize, usize)> {
    let number = token.0.checked_sub(FIRST)?;
    Some((number & 1, number >> 1))
}
