//! The server and command line of Quorate, as the library under the binary `quorate`.

pub mod config;
pub mod metrics;
