//! How replicas become equal again: by comparing, and by taking over what others have.

mod answers;
pub mod behind;
pub mod compare;
mod deferred;
pub mod doubt;
pub mod former;
mod horizons;
pub mod join;
mod snapshot;
