//! What clients were told, put into the words of the judge of the core: which transaction of the
//! logs each operation was, and which version each value that was read.

use super::customers::Told;
use crate::serializable::lane::places::place::{self, Shape};
use crate::serializable::lane::tests::world::World;
use crate::serializable::tests::judge::{Done, judge_placed};
use crate::serializable::tests::world as core;
use crate::serializable::{Act, Entry, Expiry, Outcome, Raw, State, TxId};
use crate::vsr::{Machine, Op};
use bytes::Bytes;
use quorate_kernel::ids::GroupId;
use quorate_kernel::transaction::Item;
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::String;
use std::vec::Vec;

/// Which version each value is of, and who has made it.
type Writers = BTreeMap<(Raw, Bytes), (u64, TxId)>;

fn logs(world: &World) -> Result<core::World, String> {
    let founders = world.settings.founders.len() as u64;
    let groups = world.logs.keys().map(|group| group.0).max().unwrap_or(1).max(founders);
    let mut plain = core::World::new(groups);
    for (group, log) in &world.logs {
        let last = log.keys().next_back().map_or(0, |op| op.0);
        if log.len() as u64 != last {
            return Err(format!("of {last} entries of {group:?} {} were seen", log.len()));
        }
        let at = plain.at(*group);
        plain.groups[at].log = log.values().flatten().cloned().collect();
    }
    Ok(plain)
}

fn writers(plain: &core::World, founding: Shape) -> Result<Writers, String> {
    let mut writers = Writers::new();
    for group in &plain.groups {
        let (mut state, mut disk) = (State::of(group.id, founding), core::Disk::default());
        for (index, bytes) in group.log.iter().enumerate() {
            let op = Op(index as u64 + 1);
            disk.call(|store| state.apply(op, bytes, store));
            for key in state.take_executed().into_iter().flat_map(|executed| executed.touched) {
                let item = state.item(&key, &disk);
                let Some((value, _)) = item.content.filter(|_| item.op == op.0) else { continue };
                let made = (item.version.0, item.writer);
                let before = writers.insert((key.clone(), value.0.clone()), made);
                if let Some(before) = before {
                    return Err(format!("{value:?} was put twice: {before:?} and {made:?}"));
                }
            }
        }
    }
    Ok(writers)
}

/// Judges what clients were told.
pub fn judge_all(world: &World, history: &[Told]) -> Result<usize, String> {
    let plain = logs(world)?;
    let shape = Shape::new(world.settings.founders.len() as u64);
    let (writers, groups) = (writers(&plain, shape)?, groups_of(&plain));
    let done: Result<Vec<Option<Done>>, String> =
        history.iter().map(|told| done(told, &writers, &groups)).collect();
    let done: Vec<Done> = done?.into_iter().flatten().collect();
    judge_placed(&plain, Some(shape), &done).map(|()| done.len())
}

/// The groups of each transaction that has committed, as the one says that decided it.
fn groups_of(plain: &core::World) -> BTreeMap<TxId, Vec<GroupId>> {
    let mut all = BTreeMap::new();
    for group in &plain.groups {
        for bytes in &group.log {
            match Entry::of(bytes).expect("it is an entry") {
                Entry::DecidedApplied { tx, outcome: Ok(_), .. } => {
                    all.insert(tx, Vec::from([group.id]));
                }
                Entry::Decided { tx, groups, outcome: Ok(_) } => _ = all.insert(tx, groups),
                _ => {}
            }
        }
    }
    all
}

fn done(
    told: &Told,
    writers: &Writers,
    groups: &BTreeMap<TxId, Vec<GroupId>>,
) -> Result<Option<Done>, String> {
    let mut reads = Vec::new();
    for (key, value) in &told.reads {
        let key = place::stored(key);
        let version = match value {
            // The keys that are read are never removed.
            None => 0,
            Some(value) => match writers.get(&(key.clone(), value.clone())) {
                Some((version, _)) => *version,
                None => return Err(format!("{told:?} has read what nobody has put")),
            },
        };
        reads.push((key, version, value.clone().map(Raw)));
    }
    let (mut acts, mut made) = (Vec::new(), BTreeSet::new());
    for item in &told.items {
        let key = place::stored(item.key());
        match item {
            Item::Put { value, .. } => {
                made.extend(writers.get(&(key.clone(), value.clone())).map(|(_, tx)| *tx));
                let value = Raw(value.clone());
                acts.push((key, Act::Put { value, expiry: Expiry::Never }));
            }
            Item::Delete { .. } => acts.push((key, Act::Delete)),
            Item::Get { .. } | Item::Check { .. } => {}
            Item::Change { .. }
            | Item::Expire { .. }
            | Item::Lifetime { .. }
            | Item::Copy { .. } => {
                unreachable!("nobody asks for it here")
            }
        }
    }
    if made.len() > 1 {
        return Err(format!("{told:?} was done by several: {made:?}"));
    }
    let tx = made.first().copied();
    let is_write = !acts.is_empty();
    if is_write && tx.is_none() && told.is_done {
        return Err(format!("{told:?} was acknowledged, and is in no log"));
    }
    if tx.is_some() && told.is_refused {
        return Err(format!("{told:?} was refused, and {tx:?} has done it"));
    }
    let is_judged = if is_write { tx.is_some() } else { told.is_done };
    let outcome = told.is_done.then(|| Outcome::Committed(Vec::new()));
    let groups = tx.and_then(|tx| groups.get(&tx).cloned()).unwrap_or_default();
    let (began, ended) = (told.began, told.ended.filter(|_| told.is_done));
    Ok(is_judged.then_some(Done { tx, began, ended, reads, acts, groups, outcome }))
}
