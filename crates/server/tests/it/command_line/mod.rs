//! The command line: verbs, options, exit codes, and what is printed.

mod basics;
mod check;
mod config;
mod copy;
mod ctl;
pub(super) mod dev;
mod init;
mod printed;
mod ring;
mod tree;
