//! The doors of a host that have threads of their own: gRPC and HTTP.
//!
//! | module | what it holds |
//! |---|---|
//! | [`admin`] | the HTTP door: health, metrics, status, operators' requests |
//! | [`native`] | the native API behind gRPC and HTTP/JSON |
//! | [`web`] | what the doors on HTTP share: connections within bounds, and a small client |
//! | [`units`] | lengths of time, sizes and settings as people write them |

pub mod admin;
pub mod native;
pub mod units;
pub mod web;
