//! Partitions that change hosts.

mod between;
mod copied;
mod drained;
mod handed;
mod maps;
mod owed;
