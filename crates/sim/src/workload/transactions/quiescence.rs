//! The last look: when nothing moves any more all hosts show the same of every key.

use crate::workload::Demand;
use crate::workload::fleet::Fleet;
use bytes::Bytes;
use quorate_check::history::{ClientId, Completion, Recorder};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::Time;

/// The clients of the history that stand for hosts which are looked at: above all others.
const OF_HOSTS: u32 = 1 << 16;

/// What hosts showed when they were asked last.
#[derive(Default)]
pub(super) struct Quiescence {
    keys: Vec<Bytes>,
    hosts: usize,
    asked: Time,
    /// By host, and then by key; nothing of what was not answered yet.
    shown: Vec<Option<Outcome>>,
    is_done: bool,
}

impl Quiescence {
    /// A host has answered.
    pub fn on_answer(&mut self, number: u32, outcome: Outcome) {
        self.shown[number as usize] = Some(outcome);
    }

    /// Asks every host for every key until all show the same; what they showed then enters the
    /// history. Returns what is still missing. `latest` is when a client was told something last.
    pub fn look(
        &mut self,
        keys: Vec<Bytes>,
        hosts: usize,
        fleet: &mut Fleet,
        (recorder, latest): (&mut Recorder, Time),
    ) -> Option<String> {
        if self.is_done {
            return None;
        }
        let waiting = self.shown.iter().filter(|shown| shown.is_none()).count();
        if waiting > 0 {
            return Some(format!("{waiting} last gets are under way"));
        }
        let differing = (0..self.keys.len()).find(|key| !self.is_same(*key));
        if !self.shown.is_empty() && differing.is_none() {
            self.is_done = true;
            self.record(recorder, latest);
            return None;
        }
        let why =
            differing.map(|key| format!("hosts show different values of {:?}", self.keys[key]));
        (self.keys, self.hosts, self.asked) = (keys, hosts, latest);
        self.shown = vec![None; hosts * self.keys.len()];
        for number in 0..self.shown.len() {
            let get = Operation::get(self.keys[number % self.keys.len()].clone());
            fleet.ask(number / self.keys.len(), number as u32, Demand::Operation(get));
        }
        why.or_else(|| Some("the last gets are under way".to_owned()))
    }

    /// What each host showed of a key.
    fn of(&self, key: usize) -> impl Iterator<Item = Option<&Outcome>> {
        (0..self.hosts).map(move |host| self.shown[host * self.keys.len() + key].as_ref())
    }

    fn is_same(&self, key: usize) -> bool {
        let first = self.of(key).next().flatten();
        let is_read = matches!(first, Some(Outcome::Values { .. }));
        is_read && self.of(key).all(|shown| shown == first)
    }

    fn record(&self, recorder: &mut Recorder, latest: Time) {
        for (number, outcome) in self.shown.iter().enumerate() {
            let (host, key) = (number / self.keys.len(), &self.keys[number % self.keys.len()]);
            let client = ClientId(OF_HOSTS + host as u32);
            let id = recorder.invoke(client, Operation::get(key.clone()), self.asked);
            let completion = outcome.clone().map_or(Completion::Unknown, Completion::from);
            recorder.complete(id, completion, latest);
        }
    }
}
