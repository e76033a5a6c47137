//! What a replica has: records, and which requests it has done.

pub(in crate::epidemic) mod leaf_set;
pub mod range;
pub mod record;
pub mod rest;
pub mod seen;
pub mod store;
pub mod version;
