//! Puts and deletes at a replica of the key (DottedDB Alg. 1), and what the other replicas do.

use super::get::refuse;
use super::operations::{Manner, Origin, Work, Writer};
use super::seen::Seen;
use crate::causal::keys::client_key;
use crate::causal::message::{Ending, Message, tell_fitting};
use crate::causal::replicate::replica::Replica;
use crate::causal::replicate::twins::Known;
use crate::causal::replicate::version_cache::Single;
use crate::causal::{Causal, Context};
use crate::dots::context::CausalContext;
use crate::dots::dot::{Actor, Dot, Partition};
use crate::dots::object::{Object, Version};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::SIBLING_BYTES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::time::Time;
use quorate_kernel::write::{WriteId, WriteName};

/// What a write does to a key.
pub(crate) struct Update {
    pub key: Bytes,
    /// None deletes.
    pub value: Option<Bytes>,
    /// What it replaces.
    pub seen: Seen,
    pub name: Option<WriteName>,
}

impl Causal {
    /// A client writes.
    pub(super) fn begin_write(
        &mut self,
        asker: Writer,
        key: Bytes,
        value: Option<Bytes>,
        (token, name): (&[u8], Option<WriteName>),
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let seen = match self.settings.tokens.open_seen(cx.lane, client_key(&key), token) {
            Ok(seen) => seen,
            Err(error) => {
                self.volatile.counters.contexts_refused += 1;
                return refuse(asker.ticket, Refusal::Context(error), cx);
            }
        };
        self.write(asker, Update { key, value, seen, name }, deadline, cx);
    }

    /// Does a write here if a replica of the key is here, and otherwise has one do it.
    pub(crate) fn write(
        &mut self,
        asker: Writer,
        update: Update,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        match self.local(&update.key) {
            Some(at) => self.coordinate(at, Origin::Client(asker), update, deadline, cx),
            None => self.forward(asker, update, deadline, cx),
        }
    }

    /// Does a write here, where a replica of the key is, and sees to it that enough others have it.
    pub(crate) fn coordinate(
        &mut self,
        at: Partition,
        origin: Origin,
        update: Update,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let (shape, replica) = (self.settings.shape, &self.durable.replicas[&at]);
        let goes = |single: Single| single.is_none_or(|dot| update.seen.context.covers(dot));
        let object = match replica.single(&update.key, cx) {
            // Nothing of what is there is left, nor is a write known there by its name.
            Some(single) if goes(single) && update.name.is_none() => {
                replica.bare(shape, &update.key)
            }
            _ => replica.fetch(shape, &update.key, cx),
        };
        self.coordinate_on(at, object, origin, update, deadline, cx);
    }

    /// The same, once the object was fetched; versions that the update replaces may be left out.
    pub(super) fn coordinate_on(
        &mut self,
        at: Partition,
        mut object: Object,
        origin: Origin,
        update: Update,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let shape = self.settings.shape;
        let replica = self.durable.replicas.get_mut(&at).expect("the caller found it");
        let map = self.durable.map.as_ref().expect("who has a replica has a map");
        let Update { key, value, seen, name } = update;
        let known = name.map_or(Known::New, |name| replica.known(&object, name, cx.now));
        let (mut dots, mut own) = (Vec::new(), None);
        if known == Known::Forgotten {
            probe!("causal/forgotten_write");
            return self.end_unknown(origin, cx);
        } else if known == Known::Done {
            probe!("causal/repeated_write");
            (object, dots) = replica.told_again(shape, &key, cx);
        } else if let Some(bytes) = too_large(&object, value.as_ref(), &seen.context) {
            probe!("causal/siblings_too_large");
            return self.end_refused(origin, bytes, cx);
        } else {
            let (dot, id) = (replica.issue(cx), name.map(|name| name.id));
            let (unheard, over) = replica.unheard((map, &key), (&object, &seen), id, cx);
            object = put(object, dot, value.map(|value| Version { id, value }), &seen);
            own = Some(dot);
            dots.push(dot);
            dots.extend(unheard.keys());
            object.replaced = unheard;
            replica.store(shape, &key, object.clone(), &dots, cx);
            replica.name_anew(shape, &key, (&mut object, &over), &mut dots, cx);
            replica.flush(cx);
        }
        // Who has another dot of a write that this one replaces must not show both.
        replica.name_replaced(&key, &mut object, &mut dots);
        let told = covering(&object, own);
        let (stored, from) = (replica.stored_key(&key), Some(replica.actor()));
        self.count_siblings(object.versions.len());
        let needed = usize::from(self.settings.w);
        let is_sent = self.settings.replicate_on_write && shape.replicas > 1;
        if !is_sent && needed == 1 {
            return self.end_write(origin, &key, &told, cx);
        }
        let op = if needed > 1 { self.volatile.operations.number() } else { 0 };
        let object = object.to_bytes();
        let message = Message::Replicate { op, from, dots, key: key.clone(), object };
        let hosts = self.replicas_of(&key).into_iter().map(|(_, host)| host);
        let others: Arc<[NodeId]> = hosts.filter(|host| *host != cx.me.node).collect();
        if needed == 1 {
            // It rests on this object and what was written with it, in one batch.
            cx.fx.send_after_key(&others, message, stored);
            return self.end_write(origin, &key, &told, cx);
        }
        cx.fx.send_after_key(&others, message.clone(), stored);
        let (held, message) = (BTreeSet::from([at]), Box::new(message));
        let work = Work::Write { origin, needed, held, told, message };
        self.volatile.operations.insert(op, key, deadline, work, cx);
    }

    fn count_siblings(&mut self, count: usize) {
        let counters = &mut self.volatile.counters;
        counters.siblings_most = counters.siblings_most.max(count as u64);
        if count > self.settings.siblings_warn {
            probe!("causal/many_siblings");
            counters.siblings_over += 1;
        }
    }

    /// Tells whoever waits that a write is held by enough replicas.
    fn end_write(&mut self, origin: Origin, key: &Bytes, told: &Seen, cx: &mut Context<'_>) {
        let stored = self.local(key).and_then(|at| self.durable.replicas.get(&at));
        let stored = stored.map(|replica| replica.stored_key(key));
        match origin {
            Origin::Client(asker) => {
                let outcome = self.stored(asker.manner, key, told, cx);
                match stored {
                    Some(stored) => cx.fx.answer_after_key(asker.ticket, outcome, stored),
                    None => cx.fx.answer(asker.ticket, outcome),
                }
            }
            Origin::Peer(from, op) => {
                let ending = match tell_fitting(&told.context) {
                    Ok(context) if !told.names.is_empty() => {
                        Ending::StoredAs(context, told.tell_names())
                    }
                    // Told none, the client reads before it writes the next time.
                    context => Ending::Stored(context.unwrap_or_default()),
                };
                self.conclude((from, op), ending.clone());
                let reply = Message::WriteB { op, ending };
                match stored {
                    Some(stored) => cx.fx.send_after_key(from, reply, stored),
                    None => cx.fx.send(from, reply),
                }
            }
        }
    }

    /// Refuses a write whose key would have this many bytes of values. It was not stored.
    fn end_refused(&mut self, origin: Origin, bytes: usize, cx: &mut Context<'_>) {
        match origin {
            Origin::Client(asker) => refuse(asker.ticket, siblings_too_large(bytes), cx),
            Origin::Peer(from, op) => {
                let ending = Ending::TooLarge(bytes as u64);
                self.conclude((from, op), ending.clone());
                cx.fx.send(from, Message::WriteB { op, ending });
            }
        }
    }

    /// The answer to a write that is stored.
    pub(crate) fn stored(
        &self,
        manner: Manner,
        key: &[u8],
        told: &Seen,
        cx: &mut Context<'_>,
    ) -> Outcome {
        let context = || match told.context.is_empty() {
            true => Bytes::new(),
            false => self.settings.tokens.seal_seen(cx.lane, client_key(key), told),
        };
        match manner {
            Manner::Written => Outcome::written(),
            Manner::Deleted => Outcome::deleted(true),
            Manner::WrittenOver => Outcome::Written { context: context() },
            Manner::DeletedOver => Outcome::Deleted { existed: false, context: context() },
        }
    }

    /// A write was not acknowledged by enough replicas in time. It is stored here and will spread.
    pub(super) fn end_unknown(&mut self, origin: Origin, cx: &mut Context<'_>) {
        match origin {
            Origin::Client(asker) => refuse(asker.ticket, Refusal::OutcomeUnknown, cx),
            Origin::Peer(from, op) => {
                self.conclude((from, op), Ending::Unknown);
                // It promises nothing.
                cx.fx.send_early(from, Message::WriteB { op, ending: Ending::Unknown });
            }
        }
    }

    /// Sends a write again to the replicas that have not acknowledged it.
    pub(super) fn replicate_again(&mut self, id: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(id) else { return };
        let Work::Write { held, message, .. } = &operation.work else { return };
        let (held, message, key) = (held.clone(), message.clone(), operation.key.clone());
        for (at, host) in self.replicas_of(&key) {
            if !held.contains(&at) && host != cx.me.node {
                cx.fx.send(host, Message::clone(&message));
            }
        }
    }

    /// A replica that leaves tells of a key. It lets go of what is acknowledged, and may have had
    /// it for long: state is synced, and data before it, also where data alone would be synced
    /// later. It says itself that it leaves, since the map here may be older.
    pub(crate) fn on_hand_over(
        &mut self,
        from: Incarnation,
        (op, actor): (u64, Actor),
        dots: &[Dot],
        (key, object): (&Bytes, &Bytes),
        cx: &mut Context<'_>,
    ) {
        let at = self.local(key);
        if let Some(replica) = at.and_then(|at| self.durable.replicas.get(&at)) {
            invariant!(!replica.record.is_leaving, "who leaves takes nothing over");
            replica.persist(cx);
        }
        self.on_replicate(from, (op, Some(actor)), dots, (key, object), cx);
        let replica = at.and_then(|at| self.durable.replicas.get(&at));
        invariant!(replica.is_none_or(Replica::is_flushed), "a step ends with a flush");
    }

    /// Another replica tells of a key.
    ///
    /// The whole message is dropped if it speaks for an actor that is gone for good, or if it
    /// speaks for nobody and tells an unseen update of one: it may be older than all that its peers
    /// told since. To drop only a part would make the rest say that this part was replaced.
    pub(crate) fn on_replicate(
        &mut self,
        from: Incarnation,
        (op, actor): (u64, Option<Actor>),
        dots: &[Dot],
        (key, object): (&Bytes, &Bytes),
        cx: &mut Context<'_>,
    ) {
        let (Some(at), Some(map)) = (self.local(key), &self.durable.map) else { return };
        let Ok(object) = Object::from_bytes(object) else { return };
        let replica = self.durable.replicas.get_mut(&at).expect("it is local");
        invariant!(replica.is_flushed(), "a step begins where another has ended");
        let is_over = match actor {
            Some(actor) => replica.is_finished(map, actor),
            // What a get has seen.
            None => !replica.may_repair(map, key, &object, cx),
        };
        if is_over {
            probe!("causal/late_replicate");
            self.volatile.counters.late += 1;
            // One that hands over has forgotten that it was done; or this came late, and it waits
            // for this host to copy the rest.
            let (left, version) = (actor.filter(|actor| replica.has_left(*actor)), map.version);
            let is_copied =
                |actor: &Actor| !self.has_to_copy(*actor) || mutant!("left_before_copied");
            if let Some(actor) = left.filter(is_copied) {
                cx.fx.send(from, Message::LeftB { actor, map: version });
            }
            return;
        }
        if !replica.has_seen(&object, dots) {
            let shape = self.settings.shape;
            let is_taken = match actor {
                Some(_) => replica.update(shape, key, object, (dots, false), cx),
                None => replica.repair((shape, map), key, object, cx),
            };
            replica.flush(cx);
            if !is_taken {
                return;
            }
        }
        if op != 0 {
            let is_seen = |dot: &Dot| actor.is_none() || replica.clock.contains(*dot);
            invariant!(dots.iter().all(is_seen), "what is acknowledged was seen");
            let stored = replica.stored_key(key);
            cx.fx.send_after_key(from, Message::Replicated { op, partition: at }, stored);
        }
    }

    /// A replica holds what it was sent.
    pub(crate) fn on_replicated(&mut self, op: u64, at: Partition, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(op) else {
            return self.on_handed_over(op, cx);
        };
        let Work::Write { needed, held, .. } = &mut operation.work else { return };
        held.insert(at);
        if held.len() < *needed {
            return;
        }
        let operation = self.volatile.operations.remove(op).expect("it was just there");
        let Work::Write { origin, told, .. } = operation.work else { return };
        self.end_write(origin, &operation.key, &told, cx);
    }
}

/// Puts a version under a dot, in place of what the context covers; none deletes.
///
/// What the client has seen is discarded first. DottedDB Alg. 1 adds the new dot to the client's
/// context before it merges with the local object; a context says "up to", so that would cover
/// every earlier update of this replica, also those the client never saw (T1).
fn put(mut object: Object, dot: Dot, version: Option<Version>, seen: &Seen) -> Object {
    let context = &seen.context;
    if mutant!("put_as_printed") {
        let mut new = Object { context: context.clone(), ..Object::default() };
        new.context.raise(dot.actor, dot.counter);
        new.versions.extend(version.map(|version| (dot, version)));
        new.merge(object);
        return new;
    }
    let covered = object.versions.iter().filter(|(seen, _)| context.covers(**seen));
    let mut names: BTreeSet<WriteId> = covered.filter_map(|(_, version)| version.id).collect();
    names.extend(seen.names.values());
    let is_twin = |version: &Version| version.id.is_some_and(|id| names.contains(&id));
    let goes = |seen: &Dot, version: &Version| context.covers(*seen) || is_twin(version);
    object.versions.retain(|seen, version| !goes(seen, version));
    object.context.merge(context);
    object.context.raise(dot.actor, dot.counter);
    object.versions.extend(version.map(|version| (dot, version)));
    object
}

/// How many bytes of values a key would have after a put, if that is too many. A client that has
/// seen them can always write what they come to, and any can delete.
fn too_large(object: &Object, value: Option<&Bytes>, context: &CausalContext) -> Option<usize> {
    let left = object.versions.iter().filter(|(dot, _)| !context.covers(**dot));
    let bytes = value?.len() + left.map(|(_, version)| version.value.len()).sum::<usize>();
    (bytes > SIBLING_BYTES_MAX).then_some(bytes)
}

/// The refusal of a write whose key would have this many bytes of values.
pub(super) fn siblings_too_large(length: usize) -> Refusal {
    Refusal::TooLarge { what: "key with all its siblings", length, limit: SIBLING_BYTES_MAX }
}

/// What the writer of a dot may be told to cover it. A context says "up to", so if another version
/// is left the writer would cover that unseen; it is told nothing then.
fn covering(object: &Object, dot: Option<Dot>) -> Seen {
    let is_own = |(version, _): (&Dot, &Version)| Some(*version) == dot;
    if dot.is_some() && object.versions.iter().all(is_own) {
        Seen::of(object)
    } else {
        Seen::default()
    }
}
