//! What a command sees of objects that are here and elsewhere, and what it leaves.

use super::caches::Versions;
use super::command::{Addressed, Answered};
use super::machine::Machine;
use super::partitions::{Holder, PartitionId, Partitions};
use super::placement::Placement;
use super::replica::Replica;
use crate::multicast::{Cursor, Slot};
use alloc::collections::{BTreeMap, BTreeSet};
use bytes::Bytes;
use quorate_kernel::invariant;
use quorate_kernel::mutant;

/// Objects as a command finds them; none where there is none, which is as good an answer.
pub type Variables<M> = BTreeMap<Bytes, Option<<M as Machine>::Object>>;

/// The command cannot go on: what it does next is to return this.
#[derive(Debug)]
#[must_use = "a command that goes on without an object does something else than its other replicas"]
pub struct Wait(());

/// Why a command ended before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lacks {
    /// An object of another partition is not here yet.
    Object(Bytes),
    /// This partition is not among the command's.
    Outside(PartitionId),
}

/// What a command has to do with partitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Here<'a> {
    pub partition: PartitionId,
    pub placement: &'a Placement,
    pub destinations: Partitions,
}

/// The objects as one command finds them, and what it has written itself.
#[derive(Debug)]
pub struct Execution<'a, M: Machine> {
    here: Here<'a>,
    objects: &'a BTreeMap<Bytes, M::Object>,
    /// What other partitions have sent for this command.
    received: Variables<M>,
    /// Copies that it may go on with although nobody has said yet that they are up to date.
    copies: Option<&'a Versions<Option<M::Object>>>,
    /// Those of them that it has read.
    assumed: Variables<M>,
    written: Variables<M>,
    /// Objects of this partition alone that were read as the command found them.
    read: BTreeSet<Bytes>,
    /// Why it ends early, whatever it returns.
    lacks: Option<Lacks>,
}

/// What a command leaves.
pub(super) struct Left<M: Machine> {
    pub written: Variables<M>,
    pub read: BTreeSet<Bytes>,
    pub assumed: Variables<M>,
    pub lacks: Option<Lacks>,
}

impl<'a, M: Machine> Execution<'a, M> {
    /// A command begins.
    pub(super) fn new(
        here: Here<'a>,
        objects: &'a BTreeMap<Bytes, M::Object>,
        received: Variables<M>,
    ) -> Execution<'a, M> {
        let (written, assumed) = (Variables::<M>::new(), Variables::<M>::new());
        let read = BTreeSet::new();
        Execution { here, objects, received, copies: None, assumed, written, read, lacks: None }
    }

    /// The command may go on with copies, and is executed anew if one of them is stale.
    pub(super) fn speculate(&mut self, copies: &'a Versions<Option<M::Object>>) {
        self.copies = Some(copies);
    }

    /// An object, of whichever partition; none if there is none.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&M::Object>, Wait> {
        let holder = self.holder(key)?;
        if self.written.contains_key(key) {
            return Ok(self.written.get(key).and_then(Option::as_ref));
        }
        if holder.has(self.here.partition) {
            if holder != Holder::All {
                self.read.insert(Bytes::copy_from_slice(key));
            }
            return Ok(self.objects.get(key));
        }
        if !self.received.contains_key(key) {
            if let Some((_, copy)) = self.copies.and_then(|copies| copies.get(key)) {
                self.assumed.insert(Bytes::copy_from_slice(key), copy.clone());
                return Ok(copy.as_ref());
            }
            return Err(self.ends(Lacks::Object(Bytes::copy_from_slice(key))));
        }
        Ok(self.received.get(key).and_then(Option::as_ref))
    }

    /// Some objects are read, and go to the other partitions together. Where a command does not say
    /// early what it reads, this is one message, and not one for each object.
    pub fn fetch<'k>(&mut self, keys: impl IntoIterator<Item = &'k Bytes>) -> Result<(), Wait> {
        let mut here = Ok(());
        for key in keys {
            let is_here = self.get(key).map(|_| ());
            here = here.and(is_here);
            if here.is_err() && mutant!("smr_fetches_one_by_one") {
                break;
            }
        }
        here
    }

    /// The objects of this partition as the command finds them, for lists of what all partitions
    /// have. A command looks there at nothing else: of other objects each partition has its own.
    #[must_use]
    pub fn held(&self) -> &'a BTreeMap<Bytes, M::Object> {
        self.objects
    }

    /// Puts an object in its place, whatever is there: it need not be here for that.
    pub fn put(&mut self, key: Bytes, object: M::Object) -> Result<(), Wait> {
        self.write(key, Some(object))
    }

    /// Removes an object, whatever it is.
    pub fn remove(&mut self, key: Bytes) -> Result<(), Wait> {
        self.write(key, None)
    }

    /// Nothing was done: all that the command has written so far is thrown away.
    pub fn discard(&mut self) {
        self.written.clear();
    }

    fn write(&mut self, key: Bytes, object: Option<M::Object>) -> Result<(), Wait> {
        let holder = self.holder(&key)?;
        let Here { placement, destinations, .. } = self.here;
        let all = placement.partitions();
        let mut others = all.iter().filter(|it| !destinations.contains(*it));
        if holder == Holder::All
            && let Some(other) = others.next()
            && !mutant!("smr_held_by_all_written_by_some")
        {
            return Err(self.ends(Lacks::Outside(other)));
        }
        self.written.insert(key, object);
        Ok(())
    }

    fn holder(&mut self, key: &[u8]) -> Result<Holder, Wait> {
        let holder = self.here.placement.holder::<M>(key);
        match holder {
            Holder::One(partition) if !self.here.destinations.contains(partition) => {
                Err(self.ends(Lacks::Outside(partition)))
            }
            _ => Ok(holder),
        }
    }

    /// The first reason counts: what a machine does behind it is not what it is made for.
    fn ends(&mut self, lacks: Lacks) -> Wait {
        self.lacks.get_or_insert(lacks);
        Wait(())
    }

    /// What it leaves.
    pub(super) fn left(self) -> Left<M> {
        let Execution { written, read, assumed, lacks, .. } = self;
        Left { written, read, assumed, lacks }
    }
}

/// Questions that are answered by what is here, without being ordered.
impl<M: Machine> Replica<M> {
    /// How far its rings are delivered, as a snapshot says it.
    pub(in crate::smr) fn delivered(&self) -> Cursor {
        self.merge.cursor()
    }

    /// Whether it has executed all that its rings decide before a slot.
    #[must_use]
    pub fn has_executed(&self, until: Slot) -> bool {
        self.rest_is_empty() && self.has_delivered(until)
    }

    /// What a question of this partition alone would be answered if it were executed now. Nothing
    /// of it takes effect, and it is not remembered: asked again it may be answered otherwise.
    ///
    /// # Panics
    /// It is no question, or is of other partitions.
    #[must_use]
    pub fn look(&self, question: &Addressed<M>) -> Answered<M> {
        let is_alone = question.destinations.iter().eq([self.here]);
        invariant!(is_alone && M::is_question(&question.command), "it is asked for what is here");
        if !self.is_current(question) {
            return Answered::Retry(self.state.placement.version());
        }
        let outcome = self.run(question, Variables::<M>::new()).outcome;
        let outcome = outcome.unwrap_or_else(|lacks| unreachable!("{lacks:?} is elsewhere"));
        invariant!(outcome.written.is_empty(), "a question changes nothing");
        outcome.answer
    }
}
