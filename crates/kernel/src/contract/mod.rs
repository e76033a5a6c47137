//! The contract between a protocol and whoever runs it: what it is told, what it may read, and what
//! it may ask for.

pub mod effects;
pub mod entries;
pub mod lane;
pub mod news;
pub mod observe;
pub mod process;
pub mod storage;
