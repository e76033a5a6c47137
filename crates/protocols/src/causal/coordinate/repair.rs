//! What a replica takes in of what a get has seen.
//!
//! Such an object speaks for nobody, and names dots only of what was replaced. The versions that it
//! brings have theirs. But what it takes away was replaced by an update that may be known to a host
//! alone which is lost before it tells anybody else. So the replica removes that by a dot of its
//! own, as a delete: whoever still has it hears of it.

use crate::causal::Context;
use crate::causal::map::Shape;
use crate::causal::replicate::replica::{CONTRADICTS, Replica};
use crate::dots::dot::Dot;
use crate::dots::object::Object;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::probe;

impl Replica {
    /// Takes it in; returns whether it did. What contradicts what is here changes nothing.
    pub(crate) fn repair(
        &mut self,
        shape: Shape,
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
        if dots.is_empty() && had.iter().any(is_gone) {
            probe!("causal/repair_removes");
            self.remove_anew(&mut united, &mut dots, cx);
        }
        // Those have names, which it must be able to tell.
        dots.extend(replaced.keys().filter(|dot| united.context.covers(**dot)));
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
