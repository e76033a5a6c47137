//! What clients asked and what they were told, with the times of both.

pub use crate::histories::completion::Completion;
use alloc::vec::Vec;
use core::fmt;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Time;

/// A client of the history. A client may have several operations in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

/// Names an operation between its invocation and its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u32);

/// The order number of an event that never came.
pub(crate) const NEVER: u32 = u32::MAX;

/// One operation of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    client: ClientId,
    operation: Operation,
    invoked: Time,
    completed: Option<(Time, Completion)>,
    /// The place of the invocation among all events: what judges compare instead of times.
    pub(crate) began: u32,
    /// The place of the completion among all events, or [`NEVER`].
    pub(crate) ended: u32,
    /// Whether of what it writes each key may have been written alone, see [`Recorder::tear`].
    pub(crate) is_torn: bool,
}

impl Entry {
    /// Who asked.
    #[must_use]
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// What was asked.
    #[must_use]
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// When it was asked.
    #[must_use]
    pub fn invoked(&self) -> Time {
        self.invoked
    }

    /// When the client was told, or gave up.
    #[must_use]
    pub fn completed(&self) -> Option<Time> {
        self.completed.as_ref().map(|(time, _)| *time)
    }

    /// What the client was told; an operation that was still in flight at the end is unknown.
    #[must_use]
    pub fn completion(&self) -> &Completion {
        self.completed.as_ref().map_or(&Completion::Unknown, |(_, completion)| completion)
    }

    /// Whether the operation was acknowledged or answered: neither refused nor unknown.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        !matches!(self.completion(), Completion::Refused | Completion::Unknown)
    }

    /// What is still certain of an end after a loss: that nothing was done, if one group has said
    /// so. What it has seen meanwhile may be gone.
    fn left_of(&self, completion: &Completion) -> Completion {
        match completion {
            Completion::Refused | Completion::Unmet { .. } if !self.is_torn => Completion::Refused,
            _ => Completion::Unknown,
        }
    }

    /// Whether a write may have changed its key: it was not refused.
    #[must_use]
    pub fn may_have_written(&self) -> bool {
        self.operation.is_write() && !self.completion().is_refusal()
    }
}

/// A finished recording: operations in the order of their invocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    entries: Vec<Entry>,
    healed: Option<(Time, u32)>,
    events: u32,
}

impl History {
    /// All operations in the order of their invocations.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// When all faults had ended: gets invoked later are final.
    #[must_use]
    pub fn healed(&self) -> Option<Time> {
        self.healed.map(|(time, _)| time)
    }

    /// Whether the operation is a get that was answered and was invoked after all faults had ended.
    #[must_use]
    pub fn is_final_get(&self, entry: &Entry) -> bool {
        let is_late = self.healed.is_some_and(|(_, healed)| healed < entry.began);
        is_late && matches!(entry.completion(), Completion::Value(_))
    }

    /// The place of the healing among all events.
    pub(crate) fn healed_order(&self) -> Option<u32> {
        self.healed.map(|(_, order)| order)
    }

    /// How many events there are; every order number is below it.
    pub(crate) fn events(&self) -> u32 {
        self.events
    }

    fn next_order(&mut self) -> u32 {
        let order = self.events;
        assert!(order < NEVER, "a history has fewer than 2^32 events");
        self.events += 1;
        order
    }

    /// Renumbers the events by time; events of equal time keep the order of their recording.
    fn sort(&mut self) {
        let mut order: Vec<(Time, u32)> = Vec::with_capacity(self.events as usize);
        order.extend(self.healed);
        for entry in &self.entries {
            order.push((entry.invoked, entry.began));
            order.extend(entry.completed().map(|time| (time, entry.ended)));
        }
        order.sort_unstable();
        let mut place = alloc::vec![0; self.events as usize];
        for (new, (_, old)) in (0u32..).zip(order) {
            place[old as usize] = new;
        }
        for entry in &mut self.entries {
            entry.began = place[entry.began as usize];
            if entry.ended != NEVER {
                entry.ended = place[entry.ended as usize];
            }
        }
        if let Some((_, order)) = &mut self.healed {
            *order = place[*order as usize];
        }
        self.entries.sort_unstable_by_key(|entry| entry.began);
    }
}

/// Records a history as it happens. All times are of one clock; of two events with equal times the
/// one recorded first came first. Keys and values are shared with the caller, not copied.
#[derive(Debug, Default)]
pub struct Recorder {
    history: History,
    latest: Time,
    is_out_of_order: bool,
    is_finished: bool,
    /// Of operations before this one that were under way at a loss, nobody knows how they end but
    /// by [`Entry::left_of`].
    lost_below: u32,
}

impl Recorder {
    /// A recorder without operations.
    #[must_use]
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// Records that a client asks for something.
    ///
    /// # Panics
    /// After [`Recorder::finish`].
    pub fn invoke(&mut self, client: ClientId, operation: Operation, time: Time) -> OperationId {
        let began = self.event(time);
        let id = self.history.entries.len();
        self.history.entries.push(Entry {
            client,
            operation,
            invoked: time,
            completed: None,
            began,
            ended: NEVER,
            is_torn: false,
        });
        OperationId(u32::try_from(id).expect("there are fewer operations than events"))
    }

    /// Records what a client was told, or that it gave up ([`Completion::Unknown`]).
    ///
    /// # Panics
    /// If the operation was completed before, if the time is before its invocation, if such an
    /// operation cannot end like this, or after [`Recorder::finish`]: faults of the recording.
    pub fn complete(&mut self, id: OperationId, completion: impl Into<Completion>, time: Time) {
        let ended = self.event(time);
        let entry = &mut self.history.entries[id.0 as usize];
        let mut completion = completion.into();
        if id.0 < self.lost_below {
            completion = entry.left_of(&completion);
        }
        assert!(entry.completed.is_none(), "an operation completes once");
        assert!(time >= entry.invoked, "an operation completes after its invocation");
        assert!(completion.fits(&entry.operation), "the completion fits the operation");
        entry.completed = Some((time, completion));
        entry.ended = ended;
    }

    /// Records that all faults have ended and every host serves: gets invoked from now on are the
    /// final ones that the durability judge looks at. A later call replaces an earlier one.
    ///
    /// # Panics
    /// After [`Recorder::finish`].
    pub fn heal(&mut self, time: Time) {
        if self.history.healed.is_some_and(|(earlier, _)| time <= earlier) {
            return;
        }
        let order = self.event(time);
        self.history.healed = Some((time, order));
    }

    /// Hosts have lost what was acknowledged from this time on to operations like these. Returns
    /// the history up to here, for which nothing was lost yet, and goes on with one in which nobody
    /// knows what became of those that were answered since then, or of any that are under way, but
    /// that those did nothing whose clients were told so. What was answered before holds.
    ///
    /// # Panics
    /// After [`Recorder::finish`].
    pub fn lose(&mut self, since: Time, is_lost: impl Fn(&Operation) -> bool) -> History {
        self.forget(since, is_lost, |_| false)
    }

    /// The same where some operations are about keys that are held apart from each other: what such
    /// a one writes may be left of some of its keys alone, whatever its client was or will be told.
    ///
    /// # Panics
    /// After [`Recorder::finish`].
    pub fn tear(
        &mut self,
        since: Time,
        is_lost: impl Fn(&Operation) -> bool,
        is_apart: impl Fn(&Operation) -> bool,
    ) -> History {
        self.forget(since, is_lost, is_apart)
    }

    fn forget(
        &mut self,
        since: Time,
        is_lost: impl Fn(&Operation) -> bool,
        is_apart: impl Fn(&Operation) -> bool,
    ) -> History {
        assert!(!self.is_finished, "a finished recording loses nothing more");
        let past = Recorder {
            history: self.history.clone(),
            is_out_of_order: self.is_out_of_order,
            ..Recorder::default()
        };
        for entry in &mut self.history.entries {
            let is_since = entry.completed().is_none_or(|time| time >= since);
            if !is_since || !is_lost(&entry.operation) {
                continue;
            }
            entry.is_torn |= is_apart(&entry.operation);
            if let Some((time, completion)) = entry.completed.take() {
                entry.completed = Some((time, entry.left_of(&completion)));
            }
        }
        self.lost_below = u32::try_from(self.history.entries.len()).unwrap_or(NEVER);
        past.into_history()
    }

    /// Ends the recording and shows it.
    pub fn finish(&mut self) -> &History {
        if self.is_out_of_order && !self.is_finished {
            self.history.sort();
        }
        self.is_finished = true;
        &self.history
    }

    /// Ends the recording and hands it over.
    #[must_use]
    pub fn into_history(mut self) -> History {
        self.finish();
        self.history
    }

    /// Forgets everything but keeps the room, for the next recording.
    pub fn clear(&mut self) {
        self.history.entries.clear();
        self.history.healed = None;
        self.history.events = 0;
        self.latest = Time(0);
        self.is_out_of_order = false;
        self.is_finished = false;
        self.lost_below = 0;
    }

    fn event(&mut self, time: Time) -> u32 {
        assert!(!self.is_finished, "a finished recording takes no more events");
        self.is_out_of_order |= time < self.latest;
        self.latest = self.latest.max(time);
        self.history.next_order()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn get(key: &'static str) -> Operation {
        Operation::get(Bytes::from_static(key.as_bytes()))
    }

    #[test]
    fn events_recorded_late_take_their_place_by_time() {
        let mut recorder = Recorder::new();
        let late = recorder.invoke(ClientId(1), get("late"), Time(50));
        let early = recorder.invoke(ClientId(2), get("early"), Time(10));
        recorder.complete(late, Completion::Refused, Time(60));
        recorder.heal(Time(30));
        recorder.complete(early, Completion::Value(None), Time(40));
        let history = recorder.finish();
        let entries = history.entries();
        assert_eq!(entries[0].operation(), &get("early"));
        let places = [entries[0].began, entries[0].ended, entries[1].began, entries[1].ended];
        assert_eq!(places, [0, 2, 3, 4]);
        assert_eq!(history.healed_order(), Some(1));
    }

    #[test]
    fn events_of_equal_time_keep_the_order_of_recording() {
        let mut recorder = Recorder::new();
        let first = recorder.invoke(ClientId(1), get("a"), Time(5));
        recorder.complete(first, Completion::Value(None), Time(5));
        recorder.invoke(ClientId(1), get("b"), Time(5));
        recorder.invoke(ClientId(2), get("c"), Time(1));
        let entries = recorder.finish().entries();
        assert_eq!(entries[0].operation(), &get("c"));
        assert!(entries[1].ended < entries[2].began);
    }

    #[test]
    fn only_gets_answered_after_the_healing_are_final() {
        let mut recorder = Recorder::new();
        let before = recorder.invoke(ClientId(1), get("a"), Time(1));
        recorder.heal(Time(2));
        recorder.complete(before, Completion::Value(None), Time(3));
        let after = recorder.invoke(ClientId(1), get("a"), Time(4));
        recorder.complete(after, Completion::Value(None), Time(5));
        let failed = recorder.invoke(ClientId(1), get("a"), Time(6));
        recorder.complete(failed, Completion::Unknown, Time(7));
        let history = recorder.finish();
        let finals: Vec<bool> = history.entries().iter().map(|e| history.is_final_get(e)).collect();
        assert_eq!(finals, [false, true, false]);
    }

    #[test]
    #[should_panic(expected = "the completion fits the operation")]
    fn a_get_is_not_written() {
        let mut recorder = Recorder::new();
        let id = recorder.invoke(ClientId(1), get("a"), Time(1));
        recorder.complete(id, Completion::Written, Time(2));
    }
}
