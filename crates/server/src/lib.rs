//! The server and command line of Quorate, as the library under the binary `quorate`.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cli`] | the command line: what can be asked, and how it answers |
//! | [`dev`] | a cluster on this machine in one command |
//! | [`provision`] | the birth of a cluster: ids, keyspaces, one directory a host |
//! | [`proof`] | how programs prove that they belong to a cluster |
//! | [`ring`] | where hosts stand on the ring, and how that is shown |
//! | [`config`] | the configuration of a host |
//! | [`engines`] | the engines of this process |
//! | [`host`] | one host: the core thread, its sockets and the disk thread |
//! | [`metrics`] | what the threads of a host tell the outside |
//! | [`admin`] | the HTTP door: health, metrics, status |
//! | [`native`] | the native API behind gRPC and HTTP/JSON |
//! | [`web`] | what the doors on HTTP share: connections within bounds |
//! | [`shutdown`] | the one request to stop |
//! | [`logging`] | log lines |

pub mod admin;
pub mod cli;
pub mod config;
pub mod dev;
pub mod engines;
pub mod host;
pub mod logging;
pub mod metrics;
pub mod native;
pub mod proof;
pub mod provision;
mod repeats;
pub mod ring;
pub mod shutdown;
pub mod web;
