//! The native API `quorate.v1` behind its two doors, gRPC and HTTP/JSON.
//!
//! Both doors turn what they read into the messages of `quorate-api` and call [`Native`]; neither
//! knows engines. They run on threads with runtimes of their own: an operation crosses to the core
//! thread and back through a bounded queue ([`quorate_host::Calls`]), so a slow or hostile client
//! costs the core thread nothing but its own operations.
//!
//! | module | what it holds |
//! |---|---|
//! | [`service`] | what each call does, whichever door it came through |
//! | [`scan`] | listings: cursors, ranges, pages, values |
//! | `map` | the one place where the API's words meet those of the kernel |
//! | `named` | writes with a request id: how one is known when it is sent again |
//! | `transact` | several keys as one operation |
//! | `changes` | changes of a value where it stands |
//! | `expiry` | when keys expire |
//! | `keyspaces` | the keyspaces by name, and what listings of each promise |
//! | `orders` | what operators order: keyspaces come, change and go |
//! | [`tree`] | trees, their sessions, and nodes that are followed |
//! | `about` | what is told of hosts, keyspaces and the ring |
//! | `watch` | what happens to keyspaces and hosts, as a stream |
//! | `room` | the memory of the doors |
//! | [`problem`] | typed errors |
//! | [`grpc`] | the gRPC door |
//! | [`http`] | HTTP/JSON under `/v1` |

mod about;
mod changes;
mod expiry;
pub mod grpc;
pub mod http;
mod keyspaces;
mod map;
mod named;
mod orders;
pub mod problem;
mod room;
pub mod scan;
pub mod service;
mod transact;
pub mod tree;
mod watch;

pub use problem::Problem;
pub use service::Native;
