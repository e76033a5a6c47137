//! Tests of the engine as a whole: golden scripts, golden bytes, and traps of the protocol.
//!
//! | file | what it holds |
//! |---|---|
//! | [`backlog`] | more is missing than a page holds |
//! | [`between`] | what comes while a newcomer is between two pages of a scan |
//! | [`closing`] | what must hold of actors that are closed |
//! | [`copied`] | what newcomers copy of those that leave, and when they say that they are ready |
//! | [`dropped`] | closed actors leave clocks and contexts |
//! | [`forged`] | what no correct peer says |
//! | [`golden`] | the bytes of each message |
//! | [`marks`] | what it is meant to cost |
//! | [`late`] | what was on its way for long, or is said again |
//! | [`lost`] | a client has read what is lost before others heard of it |
//! | [`maps`] | which partition holds what |
//! | [`owed`] | what the catalog is told of partitions |
//! | [`plain`] | operations without a context, and what the catalog says |
//! | [`refill`] | data that was lost, or goes elsewhere, comes back |
//! | [`retries`] | one write, sent to several hosts |
//! | [`show`] | messages and writes in readable form |
//! | [`slow`] | answers that take longer than they are waited for |
//! | [`traps`] | mistakes that the protocol invites |
//! | [`wire`] | every message is read back, and any bytes are survived |

mod backlog;
mod between;
mod closing;
mod copied;
mod drained;
mod dropped;
mod forged;
mod golden;
mod handed;
mod late;
mod lost;
mod maps;
mod marks;
mod owed;
mod plain;
mod refill;
mod retries;
mod show;
mod slow;
mod traps;
mod wire;

use super::Causal;
use crate::testing::run_scripts;

#[test]
fn every_script_shows_what_it_says() {
    run_scripts::<Causal>(concat!(env!("CARGO_MANIFEST_DIR"), "/src/causal/scripts"));
}
