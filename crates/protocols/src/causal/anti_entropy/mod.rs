//! How replicas of the same keys become equal: whom each asks when, and what one question and its
//! answer tell.

pub(crate) mod backoff;
pub(crate) mod in_flight;
mod sync;
pub mod watch;
pub(super) mod window;
