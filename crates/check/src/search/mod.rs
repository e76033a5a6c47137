//! The search for an order that explains operations, and what makes it short.

pub(super) mod memo;
pub(super) mod orders;
pub(super) mod reduce;
mod sources;
pub(super) mod timeline;
mod zones;
