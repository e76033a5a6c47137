//! Objects as they were: what a copy of one entry needs while later ones are executed.
//!
//! For each copy that is under way the replica keeps what was changed since its head, as it was
//! then. That is as much as clients change meanwhile, and goes with the copy.

use crate::vsr::Op;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Bound;
use quorate_kernel::mutant;

/// What was changed since, as it was then; none where nothing was.
type Undo<V> = BTreeMap<Bytes, Option<V>>;

/// The copies that are under way, by the entries of their heads.
#[derive(Clone, Debug)]
pub struct Copies<V>(BTreeMap<Op, Undo<V>>);

impl<V> Default for Copies<V> {
    fn default() -> Copies<V> {
        Copies(BTreeMap::new())
    }
}

impl<V: Clone> Copies<V> {
    /// A copy begins, of what is there now.
    pub fn begin(&mut self, at: Op) {
        self.0.entry(at).or_default();
    }

    /// The others have ended.
    pub fn keep(&mut self, heads: &BTreeSet<Op>) {
        self.0.retain(|at, _| heads.contains(at));
    }

    /// Something is about to change, and is this now.
    pub fn changes(&mut self, key: &Bytes, now: Option<&V>) {
        if mutant!("smr_copies_what_is_now") {
            return;
        }
        for undo in self.0.values_mut().filter(|undo| !undo.contains_key(key)) {
            undo.insert(key.clone(), now.cloned());
        }
    }

    /// What was there, from a key on, until it has so many bytes; and where the next page begins.
    #[expect(clippy::type_complexity, reason = "pairs, and what follows them")]
    pub fn page(
        &self,
        at: Op,
        from: &[u8],
        bytes_max: usize,
        now: &BTreeMap<Bytes, V>,
        bytes: impl Fn(&Bytes, &V) -> usize,
    ) -> Option<(Vec<(Bytes, V)>, Option<Bytes>)> {
        let undo = self.0.get(&at)?;
        let range = (Bound::Included(from), Bound::Unbounded);
        let mut now = now.range::<[u8], _>(range).peekable();
        let mut then = undo.range::<[u8], _>(range).peekable();
        let (mut items, mut taken) = (Vec::new(), 0);
        loop {
            let is_then = match (now.peek(), then.peek()) {
                (None, None) => return Some((items, None)),
                (Some(_), None) => false,
                (None, Some(_)) => true,
                (Some((key, _)), Some((was, _))) => was <= key,
            };
            let (key, value) = if is_then {
                let (key, value) = then.next()?;
                now.next_if(|(of, _)| *of == key);
                (key, value.as_ref())
            } else {
                now.next().map(|(key, value)| (key, Some(value)))?
            };
            let Some(value) = value else { continue };
            if taken >= bytes_max {
                return Some((items, Some(key.clone())));
            }
            taken += bytes(key, value);
            items.push((key.clone(), value.clone()));
        }
    }
}
