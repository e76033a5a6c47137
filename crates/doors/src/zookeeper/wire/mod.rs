//! The bytes of the wire, whatever they mean.
//!
//! A frame is a length of four bytes and at most [`JUTE_FRAME_BYTES_MAX`] bytes more. The first one
//! of a connection asks for a session and is answered with it. Each other one is a header (`int
//! xid, int type`) and a record; its answer a header (`int xid, long zxid, int err`) and, if it was
//! done, a record. Numbers are big-endian; strings, buffers and vectors follow their length, of
//! which -1 means that there is none. An event looks like an answer to request -1.
//!
//! | file | what it holds |
//! |---|---|
//! | `frames` | frames out of the bytes of a connection |
//! | `jute` | the codec of what is in them |
//! | `codes` | the numbers that mean something |
//!
//! [`JUTE_FRAME_BYTES_MAX`]: quorate_kernel::limits::JUTE_FRAME_BYTES_MAX

pub mod codes;
pub(crate) mod frames;
pub mod jute;
