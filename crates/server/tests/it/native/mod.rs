//! The native API over gRPC and HTTP, and its Rust client.

mod conditions;
mod contexts;
mod events;
mod grpc;
pub(super) mod http;
mod httptree;
mod outcomes;
mod routes;
mod rustadmin;
mod rustcausal;
pub(super) mod rustclient;
mod rustexpiry;
mod tpcc;
pub(super) mod tree;
