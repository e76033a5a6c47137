//! The log of a group: what is stored of it, and how whoever lacks entries or the state gets them.

pub(super) mod checkpoint;
pub(super) mod entry;
pub(super) mod sizes;
pub(super) mod stored;
pub(super) mod transfer;
