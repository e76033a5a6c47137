//! How replicas become equal again: by comparing, and by taking over what others have.

mod answers;
pub mod behind;
pub mod compare;
mod deferred;
mod donor;
pub mod doubt;
mod enough;
pub mod former;
mod horizons;
pub mod join;
mod lost;
mod snapshot;
mod take_over;
mod told;
