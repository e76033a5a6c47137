//! Histories: what clients asked and were told, as files, and taken apart by key.

mod completion;
pub mod history;
pub(super) mod items;
pub(super) mod presence;
pub mod recorded;
pub(super) mod register;
