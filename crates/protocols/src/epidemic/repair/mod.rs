//! How replicas become equal again: by comparing, and by taking over what others have.

pub mod compare;
pub mod former;
pub mod join;
