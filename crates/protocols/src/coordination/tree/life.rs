//! What follows when something was lost that had been acknowledged.
//!
//! Who goes on with what is left of the log says which life of the tree begins: none has the number
//! of another. Changes count on from a number that none before can have had, so no session has the
//! id of another, and no node the `czxid` of another, whatever was lost. Sessions of earlier lives
//! are over: what their clients rely on, as a node that is a lock, may be gone.

use super::ask;
use super::command::Answer;
use super::machine::Tree;
use super::object::{Meta, Object};
use crate::coordination::keys;
use crate::smr::Execution;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::tree::{Told, TreeReply, Zxid};

/// So many bits count the changes of a life; those above them say which life it is. That is enough
/// for a hundred thousand a second for five years, and for half a million losses.
const CHANGES_BITS: u32 = 44;
/// The last life whose number fits: clients read numbers of changes with a sign.
pub const LIFE_MAX: u64 = (1 << (63 - CHANGES_BITS)) - 1;
/// How many epochs are left for losses when members are not changed any more.
const LOSSES_LEFT: u64 = 1024;

/// Whether a group whose members are in this epoch may have others. A life has the number of the
/// epoch with which it begins, and each change of members takes one: at most one a second, as
/// primaries wish for it, and in practice one for each host that fails for good. So there are
/// enough for half a million of those. Behind that the members stay who they are, and losses have
/// numbers yet; one who needs others makes another keyspace, and copies.
#[must_use]
pub fn may_change_members(epoch: u64) -> bool {
    epoch < LIFE_MAX - LOSSES_LEFT
}

/// Another life begins, if it has not begun yet.
pub fn begin(on: &mut Execution<'_, Tree>, life: u64) -> Answer {
    let before = ask::meta(on);
    let told = |zxid| Answer::Told(TreeReply { zxid, told: Ok(Told::Done) });
    if life <= before.life || mutant!("tree_lives_on") {
        return told(before.zxid);
    }
    invariant!(life <= LIFE_MAX, "no member has put another into the log");
    let first = (life << CHANGES_BITS).max(before.zxid.0 + 1);
    let (zxid, began) = (Zxid(first), Zxid(first));
    on.put(keys::META, Object::Meta(Meta { zxid, life, began, ..before }));
    told(zxid)
}
