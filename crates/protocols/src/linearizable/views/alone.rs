//! Two members, one of which is gone for good.
//!
//! In a group of two both must vote for what follows (CATS §4.1). A host is not removed from the
//! cluster while a group needs it; but a group of one may take it in at that very moment, as long
//! as its member has not heard of the removal. Then the newcomer never comes, and without it
//! nothing is read, written or decided.
//!
//! So the other one decides alone, once it holds everything: what it accepted last, for the two may
//! have decided that, or else that the one that is gone leaves. Nothing else was decided in this
//! view, as it takes both, nor will be: it has installed the next one and votes no more. Nor was
//! anything written or read there that it does not know of.

use crate::linearizable::group::Group;
use crate::linearizable::{Context, Linearizable};
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::ring::{Closing, Ring, Standing};
use quorate_kernel::view::{Change, ViewId};

impl Linearizable {
    /// Decides what follows a view of two members of which the other one is gone for good.
    pub(crate) fn decide_alone(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let ring = self.volatile.ring.as_ref().filter(|ring| ring.closing == Closing::No);
        let change = ring.zip(self.group(view)).and_then(|(ring, group)| {
            let change = sole_decision(group, ring, cx.me.node)?;
            Some((group.view.id, change))
        });
        if let Some((follows, change)) = change.filter(|_| !mutant!("nobody_decides_alone")) {
            probe!("linearizable/decided_alone");
            self.on_decided(cx.me, follows, change, cx);
        }
    }
}

/// What this member may decide without the other one, if that is gone.
fn sole_decision(group: &Group, ring: &Ring, me: NodeId) -> Option<Change> {
    let members = group.view.members();
    let out = members.iter().copied().find(|node| *node != me)?;
    let is_gone = ring.host(out).is_some_and(|host| host.standing == Standing::Left);
    let may_decide = members.len() == 2 && is_gone && group.is_whole();
    let accepted = group.record.acceptor.accepted().map(|(_, change)| *change);
    may_decide.then(|| accepted.unwrap_or(Change::Shrink { out }))
}
