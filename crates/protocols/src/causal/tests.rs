//! Tests of the engine as a whole: golden scripts, golden bytes, and traps of the protocol.
//!
//! | file | what it holds |
//! |---|---|
//! | [`backlog`] | more is missing than a page holds |
//! | [`handover::between`] | what comes while a newcomer is between two pages of a scan |
//! | [`losses::closing`] | what must hold of actors that are closed |
//! | [`handover::copied`] | what newcomers copy of those that leave, and when they say that they are ready |
//! | [`dot_log`] | what the log of dots has, and when it is given up |
//! | [`losses::dropped`] | closed actors leave clocks and contexts |
//! | [`forged`] | what no correct peer says |
//! | [`golden`] | the bytes of each message |
//! | [`marks`] | what it is meant to cost |
//! | [`late`] | what was on its way for long, or is said again |
//! | [`losses::lost`] | a client has read what is lost before others heard of it |
//! | [`handover::maps`] | which partition holds what |
//! | [`handover::owed`] | what the catalog is told of partitions |
//! | [`plain`] | operations without a context, and what the catalog says |
//! | [`losses::refill`] | data that was lost, or goes elsewhere, comes back |
//! | [`retries`] | one write, sent to several hosts |
//! | [`show`] | messages and writes in readable form |
//! | [`slow`] | answers that take longer than they are waited for |
//! | [`told`] | the updates and names that go with an object |
//! | [`traps`] | mistakes that the protocol invites |
//! | [`waits`] | what waits while the only replica moves |
//! | [`wire`] | every message is read back, and any bytes are survived |

mod backlog;
mod dot_log;
mod forged;
mod golden;
mod handover;
mod late;
mod losses;
mod marks;
mod plain;
mod retries;
mod show;
mod slow;
mod told;
mod traps;
mod waits;
mod wire;

use super::Causal;
use crate::testing::run_scripts;

#[test]
fn every_script_shows_what_it_says() {
    run_scripts::<Causal>(concat!(env!("CARGO_MANIFEST_DIR"), "/src/causal/scripts"));
}
