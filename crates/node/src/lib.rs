//! One node: lanes, the gate in front of what may not leave yet, timers and the turn that drives
//! them. Still no IO: `server` and `sim` drive the same code through [`pump::turn`].
//!
//! A turn takes inputs (frames, requests, durability reports), fires due timers, and hands its
//! effects to a [`host::Host`]: frames and answers that may leave, and at its end one batch of
//! writes. What depends on writes that are not durable yet waits in the [`gate`] until the host
//! reports them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`node`] | [`node::Node`]: three tables and a router; it knows no protocol |
//! | [`gate`] | what may not leave yet |
//! | [`table`] | a lane's bytes: what is not durable yet, over the store |
//! | [`records`] | the data of all lanes that is at hand, in bounded memory |
//! | `layer` | protocol state and logs that are not durable yet |
//! | `memory` | the data of a lane that is never written |
//! | [`dropped`] | counts of frames that were dropped |
//! | [`timers`] | one deadline per (lane, timer), in order |
//! | [`pump`] | the loop body shared by the server and the simulator |
//! | [`host`] | what the outside must offer |
#![no_std]

extern crate alloc;

pub mod dropped;
pub mod gate;
pub mod host;
mod layer;
mod memory;
pub mod node;
mod peers;
pub mod pump;
pub mod records;
pub mod table;
pub mod timers;
