//! The bytes of messages: heads, pages and cursors, and what is checked before a message is
//! handled.

mod codec;
pub(crate) mod cursor;
mod fixed;
pub(crate) mod page;
pub(crate) mod parts;
