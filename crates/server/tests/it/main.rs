//! The binary as its users meet it.

mod basics;
mod check;
mod config;
mod dev;
mod init;
mod run;
