//! Tests of the engine as a whole: golden scripts, golden bytes, traps of the protocol, and random
//! schedules.
//!
//! | file | what it holds |
//! |---|---|
//! | [`wire::any`] | any message that a correct peer can send |
//! | [`show`] | messages and writes in readable form |
//! | [`wire::golden`] | one message of every variant, with its bytes |
//! | [`wire::bytes`] | every message's bytes, and that any other bytes are survived |
//! | [`traps`], [`crashes`] | one test for each mistake that the protocol invites |
//! | [`losses::nobody_left`] | groups in which nobody is left to ask |
//! | [`refill::alone`] | members that forget and are left alone |
//! | [`views::pairs`] | groups of two |
//! | [`views::removals`] | hosts that are gone for good |
//! | [`losses::returns`], [`losses::epochs`], [`losses::told_twice`], [`losses::last_comers`] | what was lost does not come back |
//! | [`replicate::outlived`] | what was deleted is told by nobody that missed it |
//! | [`views::outpaced`] | members that are too far behind |
//! | [`views::members`] | members that come, go, lag behind and come back |
//! | [`refill::gathers`] | members that forget while their group becomes smaller |
//! | [`views::owed`] | what members owe each other while their group changes |
//! | [`views::invitations`] | invitations that come too late, and how often they are sent |
//! | [`coordinate::answers`] | refusals, explanations, other modes |
//! | [`views::departures`] | groups that shrink, and the end of a whole cluster |
//! | [`views::splits`] | groups that are cut in two |
//! | [`views::parents`] | groups that were split, and are forgotten |
//! | [`replicate::tombstones`] | deletes, and the removal of tombstones |
//! | [`replicate::fences`] | writes that were on their way when tombstones were removed |
//! | [`replicate::comparisons`] | members that compare what they hold |
//! | [`refill::transfers`] | moves of more data than fits one message |
//! | [`random::chaos`] | a world of random messages, and the judge that tries every order of its operations |
//! | [`random::told_views`] | random schedules in it, with views that are told |
//! | [`random::rings`] | the same, with groups that follow the ring by themselves |
//! | [`replicate::piles`] | many keys at one token |
//! | [`wire::pages`] | the pages of the manual that name layouts |

mod coordinate;
mod crashes;
mod losses;
mod random;
mod refill;
mod replicate;
mod show;
mod traps;
mod views;
mod wire;

use super::Linearizable;
use crate::testing::run_scripts;

#[test]
fn every_script_shows_what_it_says() {
    run_scripts::<Linearizable>(concat!(env!("CARGO_MANIFEST_DIR"), "/src/linearizable/scripts"));
}
