//! Contexts of stored objects stand beside them, so that no value is written again when they go.

use super::replica::Replica;
use crate::causal::Context;
use crate::causal::keys::{Kind, state_bytes, state_value, stored};
use crate::causal::map::Shape;
use crate::dots::context::CausalContext;
use crate::dots::dot::{Actor, Counter, Dot};
use crate::dots::object::Object;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::mutant;
use quorate_kernel::probe;

/// The context of a stored object: what of its past the clock does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unstripped {
    /// The context.
    pub context: CausalContext,
    /// Whether the object stays as it is when the context goes: it has versions.
    pub is_plain: bool,
    /// Whether it is stored in an entry of its own; otherwise the log of dots has it.
    pub is_marked: bool,
}

/// A context as it is stored.
fn context_bytes(context: &CausalContext) -> Bytes {
    let context: Vec<(Actor, Counter)> = context.iter().collect();
    state_bytes(&context)
}

/// A stored context.
pub(crate) fn context_of(bytes: &[u8]) -> CausalContext {
    let context: Vec<(Actor, Counter)> = state_value(bytes);
    context.into_iter().collect()
}

impl Replica {
    /// Whether what is known of a key covers a version that is told, and neither the clock nor the
    /// context beside the object says so: those are told to others, what a witness says is not.
    pub(super) fn removes_by_witness(&self, key: &Bytes, told: &Object, known: &Object) -> bool {
        let beside = self.unstripped.get(key);
        let is_beside = |dot| beside.is_some_and(|beside| beside.context.covers(dot));
        let mut dots = told.versions.keys().copied();
        dots.any(|dot| known.context.covers(dot) && !self.clock.contains(dot) && !is_beside(dot))
    }

    /// The object of a key from its stored bytes.
    pub fn whole(&self, key: &[u8], bytes: &Bytes) -> Object {
        let object = Object::from_bytes(bytes);
        let mut object = object.expect("the store returns the objects that were put into it");
        if let Some(beside) = self.unstripped.get(key) {
            object.context.merge(&beside.context);
        }
        object
    }

    /// What a peer is told of a key, from its stored bytes. If `own` is not 0, the clock beside it
    /// says of this replica itself less than it has issued: then the object says that.
    /// Names go with the dots that are told beside it.
    pub fn told(&self, key: &[u8], bytes: Option<&Bytes>, own: Counter, dots: &[Dot]) -> Bytes {
        let has_names = dots.iter().any(|dot| self.dot_keys.name(*dot).is_some());
        if own == 0 && !self.unstripped.contains_key(key) && !has_names {
            return bytes.cloned().unwrap_or_default();
        }
        let mut object = match bytes {
            Some(bytes) => self.whole(key, bytes),
            None => Object::default(),
        };
        object.replaced = self.replaced_of(dots, &object);
        object.context.raise(self.actor(), own);
        match object.is_empty() {
            true => Bytes::new(),
            false => object.to_bytes(),
        }
    }

    /// Keeps the context that is left of an object, beside it. It is stored with the first of these
    /// dots, which are new; in an entry of its own if there are none, or if it has one.
    pub(super) fn put_beside(
        &mut self,
        key: &Bytes,
        (context, is_plain): (CausalContext, bool),
        dots: &[Dot],
        cx: &mut Context<'_>,
    ) {
        let nothing = CausalContext::default();
        for (index, dot) in dots.iter().enumerate() {
            let carried = if index == 0 { &context } else { &nothing };
            self.log_dot(*dot, key, carried);
        }
        let known = self.unstripped.get(key);
        let mut is_marked = known.is_some_and(|known| known.is_marked);
        if context.is_empty() {
            if is_marked {
                cx.fx.delete(self.mark(key));
            }
            self.unstripped.remove(key);
            return;
        }
        let is_new = known.is_none_or(|known| known.context != context);
        if is_new && (is_marked || dots.is_empty()) {
            cx.fx.put(self.mark(key), context_bytes(&context));
            is_marked = true;
        }
        self.unstripped.insert(key.clone(), Unstripped { context, is_plain, is_marked });
    }

    fn mark(&self, key: &[u8]) -> Bytes {
        stored(self.part, Kind::Unstripped, key)
    }

    /// An entry of the dot-key map goes, and with it what the log says of a context. What it says
    /// of the clock goes later, with the entry of the log.
    pub fn drop_dot(&mut self, dot: Dot, cx: &mut Context<'_>) {
        if let Some(key) = self.dot_keys.remove(dot) {
            self.keep_beside(&key, cx);
        }
    }

    /// The context of a key is stored without its dots from now on.
    pub(super) fn keep_beside(&mut self, key: &Bytes, cx: &mut Context<'_>) {
        let Some(beside) = self.unstripped.get_mut(key).filter(|beside| !beside.is_marked) else {
            return;
        };
        if mutant!("context_goes_with_dot") {
            return;
        }
        probe!("causal/context_outlives_its_dot");
        beside.is_marked = true;
        let context = context_bytes(&beside.context);
        cx.fx.put(self.mark(key), context);
    }

    /// Takes out of a stored object's context what the clock says by now; returns whether that was
    /// anything (DottedDB Alg. 3, `strip_causality`). What is stored beside the object may say more
    /// than is left: that is no harm.
    pub fn strip(&mut self, shape: Shape, key: &Bytes, cx: &mut Context<'_>) -> bool {
        let Some(beside) = self.unstripped.get_mut(key) else { return false };
        let before = beside.context.len();
        if !beside.is_plain {
            let object = self.read(key, cx);
            let mut left = object.context.clone();
            left.strip(&self.clock);
            let is_due = left.is_empty() || left.len() < before;
            if is_due {
                self.store(shape, key, object, &[], cx);
            }
            return is_due;
        }
        beside.context.strip(&self.clock);
        let after = beside.context.len();
        if after == 0 {
            let is_marked = beside.is_marked;
            self.unstripped.remove(key);
            if is_marked {
                cx.fx.delete(self.mark(key));
            }
        }
        after < before
    }
}
