//! What the doors on HTTP share: connections within bounds.
//!
//! A client may be slow, silent or hostile. What keeps memory bounded: so many connections at
//! once, so many streams on one of them, and a budget for the bytes of all requests and answers
//! together ([`meter`]). What keeps clients from holding it for ever: a request must have arrived
//! in time, and an answer must be taken ([`serve`], [`leaving`]). [`http`] is the other side: one
//! request.

pub mod http;
pub mod leaving;
pub mod meter;
pub mod open;
mod places;
pub mod serve;

pub use meter::{Allowance, Budget, Exhausted};
pub use open::OpenDoor;
pub use serve::{App, Patience, Spare};
