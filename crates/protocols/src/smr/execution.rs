//! What a command sees, and leaves.

use super::machine::Machine;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use core::iter::Peekable;
use core::ops::Bound;

/// The objects of a machine, in the order of keys.
pub type Objects<M> = BTreeMap<Bytes, <M as Machine>::Object>;

/// What a command left: objects, or none in their places; and what has happened.
pub(crate) type Left<M> =
    (BTreeMap<Bytes, Option<<M as Machine>::Object>>, Vec<<M as Machine>::Change>);

/// The objects as one command finds them, and what it has written itself.
#[derive(Debug)]
pub struct Execution<'a, M: Machine> {
    objects: &'a Objects<M>,
    written: BTreeMap<Bytes, Option<M::Object>>,
    changes: Vec<M::Change>,
    now_ms: u64,
    /// How many objects the commands of the entry have counted so far, this one included.
    counted: usize,
    /// How many look-ups and steps from object to object there were.
    #[cfg(test)]
    steps: core::cell::Cell<usize>,
}

impl<'a, M: Machine> Execution<'a, M> {
    /// A command begins at this time, in milliseconds since 1970.
    #[must_use]
    pub fn new(objects: &'a Objects<M>, now_ms: u64) -> Execution<'a, M> {
        Execution {
            objects,
            written: BTreeMap::new(),
            changes: Vec::new(),
            now_ms,
            counted: 0,
            #[cfg(test)]
            steps: core::cell::Cell::new(0),
        }
    }

    /// The same, where commands before it in its entry have counted so many objects.
    #[must_use]
    pub fn behind(self, counted: usize) -> Execution<'a, M> {
        Execution { counted, ..self }
    }

    /// How many objects the commands of the entry have counted so far: what a machine bounds, so
    /// that no entry takes long. Also those of commands whose writes are thrown away.
    #[must_use]
    pub fn counted(&self) -> usize {
        self.counted
    }

    /// The command has counted so many objects.
    pub fn count(&mut self, objects: usize) {
        self.counted += objects;
    }

    fn note_step(&self) {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
    }

    /// How many look-ups and steps from object to object there were.
    #[cfg(test)]
    pub fn steps(&self) -> usize {
        self.steps.get()
    }

    /// The entry's time in milliseconds since 1970: never before that of an earlier entry.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// An object.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&M::Object> {
        self.note_step();
        match self.written.get(key) {
            Some(written) => written.as_ref(),
            None => self.objects.get(key),
        }
    }

    /// Puts an object in its place.
    pub fn put(&mut self, key: Bytes, object: M::Object) {
        self.written.insert(key, Some(object));
    }

    /// Changes an object in its place; whether there is one.
    pub fn change(&mut self, key: &Bytes, change: impl FnOnce(&mut M::Object)) -> bool {
        let Some(object) = self.get(key) else { return false };
        let mut object = object.clone();
        change(&mut object);
        self.put(key.clone(), object);
        true
    }

    /// Removes an object.
    pub fn remove(&mut self, key: Bytes) {
        self.written.insert(key, None);
    }

    /// The objects from a key on, ascending. Each that the command has removed costs a step too.
    pub fn from<'b>(&'b self, key: &[u8]) -> impl Iterator<Item = (&'b Bytes, &'b M::Object)> {
        let from = (Bound::Included(key), Bound::Unbounded);
        Merged {
            objects: self.objects.range::<[u8], _>(from).peekable(),
            written: self.written.range::<[u8], _>(from).peekable(),
        }
        .inspect(|_| self.note_step())
        .filter_map(|(key, object)| Some((key, object?)))
    }

    /// The objects whose keys begin with these bytes, ascending.
    pub fn below<'b>(
        &'b self,
        prefix: &'b [u8],
    ) -> impl Iterator<Item = (&'b Bytes, &'b M::Object)> {
        self.from(prefix).take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Something has happened, and is told if the command takes effect.
    pub fn tell(&mut self, change: M::Change) {
        self.changes.push(change);
    }

    /// Nothing was done: all that the command has written and told so far is thrown away.
    pub fn discard(&mut self) {
        self.written.clear();
        self.changes.clear();
    }

    /// What it leaves.
    pub(crate) fn left(self) -> Left<M> {
        (self.written, self.changes)
    }
}

/// Two ordered lists as one; of the second what both have.
struct Merged<A: Iterator, B: Iterator> {
    objects: Peekable<A>,
    written: Peekable<B>,
}

impl<'a, K, V, A, B> Iterator for Merged<A, B>
where
    K: Ord + 'a,
    V: 'a,
    A: Iterator<Item = (&'a K, &'a V)>,
    B: Iterator<Item = (&'a K, &'a Option<V>)>,
{
    type Item = (&'a K, Option<&'a V>);

    fn next(&mut self) -> Option<Self::Item> {
        let stays = match (self.objects.peek(), self.written.peek()) {
            (None, None) => return None,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some((old, _)), Some((new, _))) if old == new => {
                self.objects.next();
                false
            }
            (Some((old, _)), Some((new, _))) => old < new,
        };
        if stays {
            return self.objects.next().map(|(key, object)| (key, Some(object)));
        }
        self.written.next().map(|(key, object)| (key, object.as_ref()))
    }
}
