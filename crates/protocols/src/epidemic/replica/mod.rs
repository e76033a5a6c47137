//! What a replica has: records, and which requests it has done.

pub mod range;
pub mod record;
pub mod seen;
pub mod store;
pub mod version;
