//! Strict serializability of a history whose logs are known.
//!
//! Every committed transaction, every strict read, and every removal of what had expired is a node.
//! Edges say what must come before what: the versions of each key in order, who has read which, and
//! who had ended before another began. An order of all exists if there is no cycle.

use super::world::{World, key};
use crate::serializable::evaluate;
use crate::serializable::lane::Shape;
use crate::serializable::rules::VALUE_BYTES_MAX;
use crate::serializable::{Act, Content, Entry, Expiry, Outcome, Raw, State, TxId};
use crate::vsr::{Machine, Op};
use quorate_kernel::ids::GroupId;
use std::collections::{BTreeMap, BTreeSet};
use std::string::String;
use std::vec::Vec;

/// What a client has seen of a key: the version, and the value if there was one.
pub type Seen = (Raw, u64, Option<Raw>);

/// What a client has done.
#[derive(Clone, Debug)]
pub struct Done {
    /// The transaction; none for a read alone.
    pub tx: Option<TxId>,
    pub began: u64,
    /// When its client was answered; never, if it was not.
    pub ended: Option<u64>,
    /// What it rests on, if it has committed.
    pub reads: Vec<Seen>,
    pub acts: Vec<(Raw, Act)>,
    pub groups: Vec<GroupId>,
    /// How it ended, if its client knows.
    pub outcome: Option<Outcome>,
}

/// A change of a key, in the order of its group's log.
#[derive(Clone, Debug)]
struct Changed {
    version: u64,
    value: Option<Raw>,
    node: usize,
}

/// The value of a key, if it has one, and when it is removed.
type Held = Option<(Raw, Option<u64>)>;

/// What the log of a group says.
#[derive(Default)]
struct Logged {
    changes: BTreeMap<Raw, Vec<(u64, TxId, Held)>>,
    /// How transactions have ended in it.
    ended: BTreeMap<TxId, bool>,
}

fn read_log(world: &World, founding: Option<Shape>, at: usize) -> Logged {
    let mut logged = Logged::default();
    let group = &world.groups[at];
    let (mut state, mut disk) = (State::new(group.id), super::world::Disk::default());
    state.founding = founding;
    for (index, bytes) in group.log.iter().enumerate() {
        let op = Op(index as u64 + 1);
        match Entry::of(bytes).expect("it is an entry") {
            Entry::DecidedApplied { tx, outcome, .. } => {
                assert!(logged.ended.insert(tx, outcome.is_ok()).is_none(), "{tx:?} ends once");
            }
            Entry::Decided { tx, outcome, .. } => {
                assert!(logged.ended.insert(tx, outcome.is_ok()).is_none(), "{tx:?} ends once");
            }
            Entry::Applied { tx, outcome } => {
                assert!(logged.ended.insert(tx, outcome.is_ok()).is_none(), "{tx:?} ends once");
            }
            _ => {}
        }
        disk.call(|store| state.apply(op, bytes, store));
        for executed in state.take_executed() {
            for name in executed.touched {
                let Some(item) = state.items.get(&name, &disk) else { continue };
                if item.op == op.0 {
                    let changes = logged.changes.entry(name).or_default();
                    changes.push((item.version.0, item.writer, item.content));
                }
            }
        }
    }
    logged
}

/// Judges what clients have done against the logs.
pub fn judge(world: &World, history: &[Done]) -> Result<(), String> {
    judge_placed(world, None, history)
}

/// The same where buckets move from where they were in the beginning.
pub fn judge_placed(
    world: &World,
    founding: Option<Shape>,
    history: &[Done],
) -> Result<(), String> {
    let read = |at| read_log(world, founding, at);
    let logs: Vec<Logged> = (0..world.groups.len()).map(read).collect();
    let mut nodes = Nodes::default();
    let mut by_tx: BTreeMap<TxId, &Done> = BTreeMap::new();
    for done in history {
        if let Some(tx) = done.tx {
            by_tx.insert(tx, done);
        }
    }
    check_outcomes(world, &logs, &by_tx)?;
    let committed: BTreeSet<TxId> = logs
        .iter()
        .flat_map(|log| log.ended.iter().filter(|(_, is_ok)| **is_ok).map(|(tx, _)| *tx))
        .collect();
    let mut node_of: BTreeMap<TxId, usize> = BTreeMap::new();
    for tx in &committed {
        node_of.insert(*tx, nodes.add(by_tx.get(tx).copied()));
    }
    let changes = orders(&logs, &by_tx, &node_of, &mut nodes)?;
    for order in changes.values() {
        for pair in order.windows(2) {
            nodes.edge(pair[0].node, pair[1].node);
        }
    }
    for done in history {
        let node = match done.tx {
            Some(tx) if committed.contains(&tx) => node_of[&tx],
            // What was aborted may have seen anything.
            Some(_) if done.outcome.is_some() || !done.acts.is_empty() => continue,
            // One that only reads is committed by its check, and is in no log.
            _ if done.ended.is_some() => nodes.add(Some(done)),
            _ => continue,
        };
        for (name, version, value) in &done.reads {
            let none = Vec::new();
            let order = changes.get(name).unwrap_or(&none);
            let place = order.partition_point(|changed| changed.version <= *version);
            let seen = place.checked_sub(1).map(|place| &order[place]);
            if seen.and_then(|changed| changed.value.as_ref()) != value.as_ref() {
                let found = std::format!("{seen:?}");
                return Err(std::format!("{done:?} saw {value:?} of {name:?}, not {found}"));
            }
            if let Some(seen) = seen {
                nodes.edge(seen.node, node);
            }
            if let Some(next) = order.get(place) {
                nodes.edge(node, next.node);
            }
        }
    }
    nodes.check_order(&changes)
}

/// The changes of each key in the order of its versions, each as its transaction has made it.
fn orders(
    logs: &[Logged],
    by_tx: &BTreeMap<TxId, &Done>,
    node_of: &BTreeMap<TxId, usize>,
    nodes: &mut Nodes<'_>,
) -> Result<BTreeMap<Raw, Vec<Changed>>, String> {
    let mut changes: BTreeMap<Raw, Vec<Changed>> = BTreeMap::new();
    let mut all: BTreeMap<&Raw, Vec<&(u64, TxId, Held)>> = BTreeMap::new();
    for (name, log) in logs.iter().flat_map(|log| &log.changes) {
        if !log.is_sorted_by(|one, next| one.0 < next.0) {
            return Err(std::format!("{name:?}: versions go back"));
        }
        all.entry(name).or_default().extend(log);
    }
    // A key is of one group at a time: whichever makes a version, the next one follows it.
    all.values_mut().for_each(|log| log.sort_by_key(|change| change.0));
    for (name, log) in all {
        let mut before: Option<(u64, Held)> = None;
        for (version, writer, content) in log {
            let last = before.as_ref().map_or(0, |(version, _)| *version);
            if *version <= last {
                return Err(std::format!("{name:?}: version {version} follows {last}"));
            }
            let node = match *writer == TxId::NONE {
                true => nodes.add(None),
                false => *node_of.get(writer).ok_or_else(|| {
                    std::format!("{name:?} was changed by {writer:?}, which has not committed")
                })?,
            };
            if let Some(done) = by_tx.get(writer) {
                let had = before.as_ref().and_then(|(_, content)| content.clone());
                check_effect(name, done, had, content)?;
            }
            let value = content.as_ref().map(|(value, _)| value.clone());
            let changed = Changed { version: *version, value, node };
            changes.entry(name.clone()).or_default().push(changed);
            before = Some((*version, content.clone()));
        }
    }
    Ok(changes)
}

/// What clients were told is what the logs say, and all groups of a transaction say the same.
fn check_outcomes(
    world: &World,
    logs: &[Logged],
    by_tx: &BTreeMap<TxId, &Done>,
) -> Result<(), String> {
    for (tx, done) in by_tx {
        let says = |group: &GroupId| logs[world.at(*group)].ended.get(tx).copied();
        let ends: Vec<Option<bool>> = done.groups.iter().map(says).collect();
        if ends.contains(&Some(true)) && ends.iter().any(|end| *end != Some(true)) {
            return Err(std::format!("{tx:?} has committed in some of its groups: {ends:?}"));
        }
        let has_committed = ends.contains(&Some(true));
        let is_wrong = match &done.outcome {
            Some(Outcome::Committed(_)) => !has_committed && !done.acts.is_empty(),
            Some(Outcome::Aborted(_)) => has_committed,
            _ => false,
        };
        if is_wrong {
            return Err(std::format!("{tx:?} was told {:?}, logs say {ends:?}", done.outcome));
        }
    }
    Ok(())
}

/// What a transaction has made of a key is what its acts make of what was there.
fn check_effect(name: &Raw, done: &Done, had: Held, has: &Held) -> Result<(), String> {
    let times = |act: &Act| {
        let at = |expiry: &Expiry| matches!(expiry, Expiry::At(_));
        match act {
            Act::Put { expiry, .. } | Act::PutIf { expiry, .. } => at(expiry),
            Act::Expire { .. } => true,
            _ => false,
        }
    };
    let acts: Vec<&Act> =
        done.acts.iter().filter(|(of, _)| of == name).map(|(_, act)| act).collect();
    if acts.iter().any(|act| times(act)) {
        return Ok(());
    }
    let mut content = had.map(|(value, expires)| Content { value: value.0, expires });
    for act in acts {
        let version = crate::serializable::Version(0);
        let _ = evaluate(act, &mut content, version, VALUE_BYTES_MAX);
    }
    let is_it = content.as_ref().map(|content| &content.value) == has.as_ref().map(|it| &it.0.0);
    if is_it { Ok(()) } else { Err(std::format!("{done:?} has made {has:?} of {name:?}")) }
}

/// What must come before what.
#[derive(Default)]
struct Nodes<'a> {
    done: Vec<Option<&'a Done>>,
    edges: BTreeSet<(usize, usize)>,
}

impl<'a> Nodes<'a> {
    fn add(&mut self, done: Option<&'a Done>) -> usize {
        self.done.push(done);
        self.done.len() - 1
    }

    fn edge(&mut self, before: usize, after: usize) {
        if before != after {
            self.edges.insert((before, after));
        }
    }

    /// Adds who had ended before whom, and takes away whoever nobody must precede, until none is
    /// left.
    fn check_order(mut self, changes: &BTreeMap<Raw, Vec<Changed>>) -> Result<(), String> {
        for (one, first) in self.done.iter().enumerate() {
            let Some(ended) = first.and_then(|done| done.ended) else { continue };
            for (other, second) in self.done.iter().enumerate() {
                if second.is_some_and(|done| done.began > ended) {
                    self.edges.insert((one, other));
                }
            }
        }
        let mut before: BTreeMap<usize, usize> = BTreeMap::new();
        let mut after: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (one, other) in &self.edges {
            *before.entry(*other).or_default() += 1;
            after.entry(*one).or_default().push(*other);
        }
        let mut free: Vec<usize> =
            (0..self.done.len()).filter(|node| !before.contains_key(node)).collect();
        let mut taken = 0;
        while let Some(node) = free.pop() {
            taken += 1;
            for other in after.get(&node).into_iter().flatten() {
                let count = before.get_mut(other).expect("it has one before it");
                *count -= 1;
                if *count == 0 {
                    free.push(*other);
                }
            }
        }
        if taken == self.done.len() {
            return Ok(());
        }
        let stuck: Vec<_> = before.iter().filter(|(_, count)| **count > 0).collect();
        let shown: Vec<_> = stuck.iter().filter_map(|(node, _)| self.done[**node]).collect();
        Err(std::format!("no order fits {shown:#?}, with {changes:?}"))
    }
}

/// What a read saw, from its answer.
pub fn seen(names: &[Raw], items: &[crate::serializable::Item]) -> Vec<Seen> {
    let of = |item: &crate::serializable::Item| item.content.as_ref().map(|(it, _)| it.clone());
    names.iter().zip(items).map(|(name, it)| (name.clone(), it.version.0, of(it))).collect()
}

/// The judge condemns what it should.
mod blind {

    use super::*;
    use crate::serializable::Version;

    fn history(world: &mut World) -> Vec<Done> {
        let id = |counter| super::super::world::tx(counter, 1);
        let put = super::super::world::put;
        let (one, other) = (key("1a"), key("1b"));
        world.commit_tx(id(1), &[], &[("1a", put("x"))]);
        world.settle();
        world.commit_tx(id(2), &[], &[("1a", put("y"))]);
        world.settle();
        let done = |counter, began, ended, value: &str| Done {
            tx: Some(id(counter)),
            began,
            ended: Some(ended),
            reads: Vec::new(),
            acts: Vec::from([(one.clone(), put(value))]),
            groups: Vec::from([GroupId(1)]),
            outcome: Some(Outcome::Committed(Vec::new())),
        };
        assert_ne!(one, other);
        Vec::from([done(1, 1, 2, "x"), done(2, 3, 4, "y")])
    }

    fn read(began: u64, ended: u64, version: Version, value: &str) -> Done {
        Done {
            tx: None,
            began,
            ended: Some(ended),
            reads: Vec::from([(key("1a"), version.0, Some(key(value)))]),
            acts: Vec::new(),
            groups: Vec::new(),
            outcome: None,
        }
    }

    #[test]
    fn an_old_value_after_a_new_one_was_acknowledged() {
        let mut world = World::new(1);
        let mut all = history(&mut world);
        all.push(read(5, 6, Version(2), "y"));
        judge(&world, &all).expect("it is in order");
        all.push(read(7, 8, Version(1), "x"));
        assert!(judge(&world, &all).is_err(), "it is too old");
    }

    #[test]
    fn a_value_that_was_never_there_and_a_false_outcome() {
        let mut world = World::new(1);
        let all = history(&mut world);
        let mut wrong = all.clone();
        wrong.push(read(5, 6, Version(2), "z"));
        assert!(judge(&world, &wrong).is_err(), "nobody has put that");
        let mut wrong = all;
        wrong[0].outcome = Some(Outcome::Aborted(crate::serializable::Cause::Timeout));
        assert!(judge(&world, &wrong).is_err(), "it has committed");
    }
}
