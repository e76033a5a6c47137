//! Verbs about one host: its directory is made, and it is run.

mod doors;
pub mod init;
pub mod join;
pub mod rejoin;
pub mod server;
