//! Bytes: frames and values, and the buffers that they are put together in.

pub mod arena;
pub mod plain;
pub mod rope;
pub mod wire;
