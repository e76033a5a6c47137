//! Requests out of bytes: arrays of bulk strings, and lines that a person types.

pub(super) mod frame;
pub(crate) mod inline;
pub(super) mod parse;
