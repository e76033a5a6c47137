//! Tests of the engine as a whole: golden scripts, golden bytes, traps of the protocol, and random
//! schedules.
//!
//! | file | what it holds |
//! |---|---|
//! | [`any`] | any message that a correct peer can send |
//! | [`show`] | messages and writes in readable form |
//! | [`golden`] | one message of every variant, with its bytes |
//! | [`wire`] | every message's bytes, and that any other bytes are survived |
//! | [`traps`], [`crashes`] | one test for each mistake that the protocol invites |
//! | [`losses`] | groups in which nobody is left to ask |
//! | [`alone`] | members that forget and are left alone |
//! | [`pairs`] | groups of two |
//! | [`removals`] | hosts that are gone for good |
//! | [`returns`], [`epochs`], [`told_twice`], [`last_comers`] | what was lost does not come back |
//! | [`outlived`] | what was deleted is told by nobody that missed it |
//! | [`outpaced`] | members that are too far behind |
//! | [`members`] | members that come, go, lag behind and come back |
//! | [`gathers`] | members that forget while their group becomes smaller |
//! | [`owed`] | what members owe each other while their group changes |
//! | [`invitations`] | invitations that come too late, and how often they are sent |
//! | [`answers`] | refusals, explanations, other modes |
//! | [`departures`] | groups that shrink, and the end of a whole cluster |
//! | [`splits`] | groups that are cut in two |
//! | [`parents`] | groups that were split, and are forgotten |
//! | [`tombstones`] | deletes, and the removal of tombstones |
//! | [`fences`] | writes that were on their way when tombstones were removed |
//! | [`comparisons`] | members that compare what they hold |
//! | [`transfers`] | moves of more data than fits one message |
//! | [`chaos`] | a world of random messages, and the judge that tries every order of its operations |
//! | [`random`] | random schedules in it, with views that are told |
//! | [`rings`] | the same, with groups that follow the ring by themselves |
//! | [`piles`] | many keys at one token |
//! | [`pages`] | the pages of the manual that name layouts |

mod aftermath;
mod again;
mod alone;
mod answers;
mod any;
mod behind;
mod chaos;
mod comparisons;
mod copies;
mod crashes;
mod departures;
mod drains;
mod epochs;
mod fences;
mod gathers;
mod golden;
mod invitations;
mod last_comers;
mod leavers;
mod losses;
mod members;
mod outlived;
mod outpaced;
mod owed;
mod pages;
mod pairs;
mod parents;
mod passed;
mod piles;
mod random;
mod removals;
mod returns;
mod rings;
mod show;
mod splits;
mod stranded;
mod told_twice;
mod tombstones;
mod transfers;
mod traps;
mod unheard;
mod wire;

use super::Linearizable;
use crate::testing::run_scripts;

#[test]
fn every_script_shows_what_it_says() {
    run_scripts::<Linearizable>(concat!(env!("CARGO_MANIFEST_DIR"), "/src/linearizable/scripts"));
}
