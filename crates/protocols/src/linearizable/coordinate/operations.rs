//! The operations in hand, by number and by the time at which they are looked after.

use super::by_id::ById;
use super::coordinator::Operation;
use crate::linearizable::Context;
use crate::linearizable::timer::Timer;
use alloc::collections::BTreeSet;
use hashbrown::HashMap;
use quorate_kernel::time::Time;

/// All operations in hand.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    pub by_id: HashMap<u64, Operation, ById>,
    alarms: BTreeSet<(Time, u64)>,
    armed: Option<Time>,
    last_id: u64,
}

impl Operations {
    pub fn get_mut(&mut self, id: u64) -> Option<&mut Operation> {
        self.by_id.get_mut(&id)
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The number that the next operation will have.
    pub fn next_id(&self) -> u64 {
        self.last_id + 1
    }

    /// Gives an operation its number.
    pub fn number(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// An operation goes on under a new number: what is still said of the old one counts for
    /// nothing.
    pub fn renumber(&mut self, id: u64, cx: &mut Context<'_>) -> u64 {
        let Some(operation) = self.by_id.remove(&id) else { return id };
        let (at, id) = (operation.alarm, self.number());
        self.by_id.insert(id, operation);
        self.set_alarm(id, at, cx);
        id
    }

    pub fn check(&self) {
        assert!(self.alarms.len() >= self.by_id.len(), "every operation has an alarm");
        if let Some((first, _)) = self.alarms.first() {
            let is_armed = self.armed.is_some_and(|armed| armed <= *first);
            assert!(is_armed, "the timer fires before any alarm is due");
        }
    }

    /// Wakes an operation at this time; an earlier alarm of it is stale.
    pub fn set_alarm(&mut self, id: u64, at: Time, cx: &mut Context<'_>) {
        let Some(operation) = self.by_id.get_mut(&id) else { return };
        operation.alarm = at;
        self.alarms.insert((at, id));
        self.arm(cx);
    }

    /// The timer fired: takes the next operation whose alarm is due, and arms the timer again when
    /// none is left.
    pub fn next_due(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        while let Some(&(at, id)) = self.alarms.first()
            && at <= cx.now
        {
            self.alarms.pop_first();
            // A later alarm has taken its place, or the operation has ended.
            if self.by_id.get(&id).is_some_and(|operation| operation.alarm == at) {
                return Some(id);
            }
        }
        self.armed = None;
        self.arm(cx);
        None
    }

    fn arm(&mut self, cx: &mut Context<'_>) {
        let Some((first, _)) = self.alarms.first() else { return };
        if self.armed.is_none_or(|armed| *first < armed) {
            self.armed = Some(*first);
            cx.fx.arm(Timer::Operations, *first);
        }
    }
}
