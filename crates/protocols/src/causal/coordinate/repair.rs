//! What a replica takes in of what a get has seen.
//!
//! Such an object speaks for nobody, and names dots only of what was replaced. The versions that it
//! brings have theirs. But its past has more, which was replaced by updates that may be known to a
//! host alone which is lost before it tells anybody else. So the replica takes it in by a dot of
//! its own, as a delete: whoever still has any of that hears of it. This holds also if nothing of
//! that is here, as it would not be let in later. An object that changes no version is not taken in
//! at all. The price is that the peers are told the object once more.

use super::merged::{ReadReplies, ReadReply};
use crate::causal::map::{Map, Shape};
use crate::causal::message::Message;
use crate::causal::replicate::replica::{CONTRADICTS, Replica};
use crate::causal::{Causal, Context};
use crate::dots::dot::Dot;
use crate::dots::object::Object;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::mutant;
use quorate_kernel::probe;

impl Causal {
    /// Sends the merged object to replicas whose answer lacked some of it.
    pub(super) fn send_repairs(
        &mut self,
        key: &Bytes,
        merged: &Object,
        replies: &ReadReplies,
        cx: &mut Context<'_>,
    ) {
        let object = merged.to_bytes();
        for (at, host) in self.replicas_of(key) {
            let is_behind =
                |reply: &ReadReply| !reply.object.versions.keys().eq(merged.versions.keys());
            if !replies.get(&at).is_some_and(is_behind) {
                continue;
            }
            probe!("causal/read_repair");
            if host == cx.me.node {
                let (Some(replica), Some(map)) =
                    (self.durable.replicas.get_mut(&at), &self.durable.map)
                else {
                    continue;
                };
                if !replica.may_repair(map, key, merged, cx) {
                    continue;
                }
                replica.repair((self.settings.shape, map), key, merged.clone(), cx);
                replica.flush(cx);
            } else {
                let (key, object) = (key.clone(), object.clone());
                let message =
                    Message::Replicate { op: 0, from: None, dots: Vec::new(), key, object };
                cx.fx.send(host, message);
            }
        }
    }
}

impl Replica {
    /// Takes it in; returns whether it did. What contradicts what is here changes nothing.
    pub(crate) fn repair(
        &mut self,
        (shape, map): (Shape, &Map),
        key: &Bytes,
        object: Object,
        cx: &mut Context<'_>,
    ) -> bool {
        let known = self.fetch(shape, key, cx);
        if !known.agrees(&object) {
            cx.fx.refuse(CONTRADICTS);
            return false;
        }
        let had: Vec<Dot> = known.versions.keys().copied().collect();
        let (mut dots, replaced) = (Vec::new(), object.replaced.clone());
        let mut united = self.unite(known, object, &mut dots, cx);
        let is_gone = |dot: &Dot| !united.versions.contains_key(dot);
        let removes = had.iter().any(is_gone);
        if dots.is_empty() && !removes && united.versions.len() == had.len() {
            return true;
        }
        if removes {
            probe!("causal/repair_removes");
        }
        if dots.is_empty() && (removes || !mutant!("causal_repairs_in_silence")) {
            self.remove_anew(&mut united, &mut dots, cx);
        }
        // Those have names, which it must be able to tell; but not of finished actors, of which
        // peers may count on hearing nothing more.
        let is_over = |actor| self.is_finished(map, actor) && !mutant!("causal_repairs_tell_all");
        let is_told = |dot: &&Dot| {
            let is_past = united.context.covers(**dot) && !is_over(dot.actor);
            is_past && !mutant!("causal_repairs_no_names")
        };
        dots.extend(replaced.keys().filter(is_told));
        self.store(shape, key, Object { replaced, ..united }, &dots, cx);
        true
    }

    /// What an object has lost goes by a dot of this replica, as by a delete, which is added to
    /// these.
    pub(crate) fn remove_anew(
        &mut self,
        object: &mut Object,
        dots: &mut Vec<Dot>,
        cx: &mut Context<'_>,
    ) {
        let dot = self.issue(cx);
        object.context.raise(dot.actor, dot.counter);
        dots.push(dot);
    }
}
