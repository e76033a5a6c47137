//! The last look: when nothing moves any more all hosts show the same tree, and in it no node that
//! ends with a session, as no client is there.

use super::without;
use crate::host::Running;
use crate::queue::HostIndex;
use crate::workload::fleet::Fleet;
use crate::workload::{Demand, Ground};
use quorate_check::history::{ClientId, Completion};
use quorate_check::tree::{AskedId, Record};
use quorate_kernel::operation::{Cursor, Operation, Outcome};
use quorate_kernel::time::Time;
use quorate_kernel::tree::{Act, Failure, Item, SessionId, Stat, Told, TreeReply};

/// The clients of the record that stand for hosts which are looked at: above all others.
const OF_HOSTS: u32 = 1 << 16;
/// More nodes than clients make.
const NODES_MAX: u32 = 1000;

/// What hosts showed when they were asked last.
#[derive(Default)]
pub(super) struct Quiescence {
    /// The hosts that are asked.
    hosts: Vec<HostIndex>,
    /// What the record has of the questions, if it has them.
    recorded: Vec<AskedId>,
    shown: Vec<Option<Outcome>>,
    /// The paths of all nodes, once hosts have told them.
    paths: Option<Vec<String>>,
    is_done: bool,
}

impl Quiescence {
    /// A host has answered.
    pub fn on_answer(&mut self, number: u32, outcome: Outcome, (record, now): (&mut Record, Time)) {
        let number = number as usize;
        if let Some(asked) = self.recorded.get(number) {
            record.answer(*asked, Completion::from(outcome.clone()), now);
        }
        self.shown[number] = Some(outcome);
    }

    /// Asks every host for the whole tree until all show the same. Returns what is still missing.
    pub fn look(
        &mut self,
        ground: &Ground<'_>,
        fleet: &mut Fleet,
        (record, now): (&mut Record, Time),
    ) -> Option<String> {
        if self.is_done {
            return None;
        }
        let waiting = self.shown.iter().filter(|shown| shown.is_none()).count();
        if waiting > 0 {
            return Some(format!("{waiting} last reads are under way"));
        }
        let why = self.hear();
        if why.is_none() && self.is_done {
            return None;
        }
        let is_there = |host: &HostIndex| {
            let host = &ground.hosts[*host];
            host.running == Running::Up && host.has_joined && host.is_ready()
        };
        self.hosts = (0..ground.hosts.len()).filter(is_there).collect();
        self.shown = vec![None; self.hosts.len()];
        self.recorded.clear();
        for (number, host) in self.hosts.iter().enumerate() {
            let operation = self.question();
            if self.paths.is_some() {
                let client = ClientId(OF_HOSTS + *host as u32);
                self.recorded.push(record.ask(client, None, operation.clone(), now));
            }
            fleet.ask(*host, number as u32, Demand::Operation(operation));
        }
        why.or_else(|| Some("the last reads are under way".to_owned()))
    }

    /// Either which nodes there are, or what each of them has.
    fn question(&self) -> Operation {
        let Some(paths) = &self.paths else {
            return Operation::Scan { from: Cursor::default(), limit: NODES_MAX };
        };
        let reads = |path: &String| {
            let get = Item::Get { path: path.clone(), watch: false };
            [get, Item::Children { path: path.clone(), watch: false }]
        };
        without(Act::Each(paths.iter().flat_map(reads).collect()))
    }

    /// Takes in what all have shown. Returns what is wrong with it.
    fn hear(&mut self) -> Option<String> {
        let mut all = self.shown.iter().flatten();
        let first = all.next()?;
        let told = |outcome: &Outcome| match outcome {
            Outcome::Tree(reply) => Some(reply.told.clone()),
            _ => None,
        };
        let is_same = match first {
            Outcome::Page { .. } => all.all(|shown| shown == first),
            Outcome::Tree(_) => all.all(|shown| told(shown) == told(first)),
            _ => false,
        };
        if !is_same {
            self.paths = None;
            return Some(format!("hosts show different trees: {:?}", self.shown));
        }
        match first {
            Outcome::Page { keys, .. } => {
                let text = |key: &bytes::Bytes| String::from_utf8_lossy(key).into_owned();
                self.paths = Some(keys.iter().map(text).collect());
                None
            }
            Outcome::Tree(reply) => match owned(reply) {
                Some((path, session)) => {
                    self.paths = None;
                    Some(format!("{path} is there, and with it session {:x}", session.0))
                }
                None => {
                    self.is_done = true;
                    None
                }
            },
            _ => None,
        }
    }
}

/// A node that ends with a session, or a read that found none.
fn owned(reply: &TreeReply) -> Option<(String, SessionId)> {
    let Ok(Told::Many(many)) = &reply.told else { return Some((String::new(), SessionId(0))) };
    let of = |told: &Result<Told, Failure>| match told {
        Ok(Told::Data { stat: Stat { ephemeral_owner, .. }, data }) => {
            let name = String::from_utf8_lossy(data.as_deref().unwrap_or_default()).into_owned();
            (ephemeral_owner.0 != 0).then_some((name, *ephemeral_owner))
        }
        Ok(_) => None,
        Err(_) => Some((String::from("a node that is gone"), SessionId(0))),
    };
    many.iter().find_map(of)
}
