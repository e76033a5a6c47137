//! Objects with the past of their keys, which the clock says for the most part.

use super::replica::Replica;
use super::version_cache::Single;
use crate::causal::Context;
use crate::causal::map::Shape;
use crate::dots::dot::{Actor, Dot};
use crate::dots::object::Object;
use bytes::Bytes;
use quorate_kernel::probe;

impl Replica {
    /// The object of a key with its whole past (DottedDB Alg. 2, `fetch`).
    pub fn fetch(&self, shape: Shape, key: &Bytes, cx: &Context<'_>) -> Object {
        self.witnessed(shape, key, self.fetch_seen(shape, key, cx))
    }

    /// The object of a key without what witnesses alone say, unless it is stored with it: they are
    /// not told on ([`crate::causal::handover::join`]).
    pub(crate) fn fetch_seen(&self, shape: Shape, key: &Bytes, cx: &Context<'_>) -> Object {
        self.filled(shape, key, self.read(key, cx))
    }

    /// The whole past of a key without its versions; of a key whose context stands beside it.
    pub fn bare(&self, shape: Shape, key: &Bytes) -> Object {
        let beside = self.unstripped.get(key).map(|beside| beside.context.clone());
        let object = Object { context: beside.unwrap_or_default(), ..Object::default() };
        self.witnessed(shape, key, self.filled(shape, key, object))
    }

    fn filled(&self, shape: Shape, key: &Bytes, mut object: Object) -> Object {
        let replicas = shape.replicas_of_key(key);
        object.fill(&self.clock, |actor| replicas.contains(&actor.partition.0));
        object
    }

    fn witnessed(&self, shape: Shape, key: &Bytes, mut object: Object) -> Object {
        let replicas = shape.replicas_of_key(key);
        let is_meant = |actor: Actor| replicas.contains(&actor.partition.0);
        let witnesses = self.record.witnesses.iter().filter(|(at, _)| replicas.contains(&at.0));
        for (actor, counter) in witnesses.flat_map(|(_, witness)| witness) {
            if !is_meant(*actor) {
                continue;
            }
            let is_new = !object.context.covers(Dot { actor: *actor, counter: *counter });
            if is_new {
                probe!("causal/witness_fills")
            }
            object.context.raise(*actor, *counter);
        }
        // The witnesses of scans that are under way, as far as they have come.
        let scans = self.rounds.scans.iter().filter(|(at, _)| replicas.contains(&at.0));
        for clock in scans.filter_map(|(_, scan)| scan.passed(key)) {
            object.fill(clock, is_meant);
        }
        object
    }

    /// The only version of a key, if it is known without reading.
    pub fn single(&self, key: &Bytes, cx: &Context<'_>) -> Option<Single> {
        let single = self.version_cache.get(key)?;
        debug_assert!(
            self.read(key, cx).versions.keys().eq(single.as_ref()),
            "what is known is what is stored"
        );
        Some(single)
    }

    /// The object of a key, but for what goes when this one is merged with it: mostly that need not
    /// be read.
    pub(super) fn fetch_beside(
        &self,
        shape: Shape,
        key: &Bytes,
        other: &Object,
        cx: &Context<'_>,
    ) -> Object {
        match self.single(key, cx) {
            // What both have is read, to see whether it is the same.
            Some(Some(dot)) if other.context.covers(dot) && !other.versions.contains_key(&dot) => {
                self.bare(shape, key)
            }
            Some(None) => self.bare(shape, key),
            _ => self.fetch(shape, key, cx),
        }
    }
}
