//! The native API `quorate.v1`: messages, clients and servers, generated from `proto/`.
//!
//! The generated code is committed, so building it needs no compiler for the schema. `cargo xtask
//! proto` writes it anew, and a test of `xtask` fails if it is not what the schema says.
//!
//! | module | what it holds |
//! |---|---|
//! | [`v1`] | everything that `proto/quorate/v1` defines |
//! | [`details`] | an [`v1::Error`] in and out of the details of a gRPC status |

pub mod details;

/// What `proto/quorate/v1` defines.
#[allow(clippy::all, missing_docs, unused_qualifications)] // A tool writes it.
#[rustfmt::skip]
pub mod v1 {
    include!("generated/quorate.v1.rs");
}

/// The schema in its compiled form, as servers tell it by reflection.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!("generated/quorate.v1.bin");
