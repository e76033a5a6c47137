//! Commands for engines that keep siblings, on fixed partitions.

use super::Scripted;
use super::script::{Done, bytes, number};
use super::world::World;
use crate::causal::map::Shape;
use bytes::Bytes;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::keyspace::{Keyspace, Partition, Tenure};
use quorate_kernel::news::News;
use quorate_kernel::operation::{Operation, Outcome};
use std::borrow::ToOwned;
use std::string::ToString;
use std::sync::Arc;
use std::vec::Vec;

/// One host takes another's partitions; the former may be gone for good. If both are the same it is
/// gone, and nobody has them yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Who gives it up.
    pub out: u64,
    /// Who takes it.
    pub into: u64,
    /// Whether who gives it up will never answer.
    pub gone: bool,
}

/// The first record of a keyspace: these hosts have its partitions in turn.
pub fn first(shape: Shape, hosts: &[NodeId]) -> Keyspace {
    let number = |name: &str, number: u16| (name.to_owned(), number.to_string());
    let settings = [number("partitions", shape.partitions), number("replicas", shape.replicas)];
    let record = Keyspace::new("k", LaneId(1), "causal", settings.into(), 1);
    let nodes = hosts.iter().cycle().take(usize::from(shape.partitions));
    let place = |node: &NodeId| Partition { node: *node, since: 1, is_settled: true };
    Keyspace { partitions: nodes.map(place).collect(), ..record }
}

/// The record after one more move.
pub fn moved(mut record: Keyspace, one: &Move) -> Keyspace {
    let (out, into) = (NodeId(one.out), NodeId(one.into));
    record.changed += 1;
    for (partition, place) in (0..).zip(&mut record.partitions) {
        if place.node != out {
            continue;
        }
        record.former.push(Tenure { partition, since: place.since, node: out });
        if into != out {
            *place = Partition { node: into, since: record.changed, is_settled: false };
        }
    }
    if one.gone {
        record.gone.insert(out);
        record.former.retain(|tenure| tenure.node != out);
    }
    record
}

/// An operation of a script's words.
pub(super) fn operation<P: Scripted>(
    world: &World<P>,
    command: &str,
    words: &[&str],
) -> Done<Operation> {
    Ok(match (command, words) {
        ("read", [key]) => Operation::get_all(bytes(key)?, None),
        ("read", [key, "of", count]) => {
            let count = u8::try_from(number(count)?).map_err(|_| "too many".to_owned())?;
            Operation::get_all(bytes(key)?, Some(count))
        }
        ("write", [key, value, basis @ ..]) => {
            let context = context(world, basis)?;
            Operation::put_over(bytes(key)?, bytes(value)?, context, None)
        }
        ("remove", [key, basis @ ..]) => {
            Operation::delete_over(bytes(key)?, context(world, basis)?)
        }
        _ => return Err("unknown command".to_owned()),
    })
}

fn context<P: Scripted>(world: &World<P>, words: &[&str]) -> Done<Bytes> {
    match words {
        [] => Ok(Bytes::new()),
        ["after", request] => {
            let index = usize::try_from(number(request)?).map_err(|_| "too far".to_owned())?;
            let answer = index.checked_sub(1).and_then(|index| world.answers.get(index));
            let context = match answer {
                Some((_, Some(outcome))) => context_of(outcome),
                _ => None,
            };
            context.ok_or_else(|| "that request has no context".to_owned())
        }
        _ => Err("expected `after NUMBER`".to_owned()),
    }
}

/// The context that an answer carries.
pub fn context_of(outcome: &Outcome) -> Option<Bytes> {
    match outcome {
        Outcome::Values { context, .. }
        | Outcome::Written { context }
        | Outcome::Deleted { context, .. } => Some(context.clone()),
        _ => None,
    }
}

/// Tells a node, or all that are up, who holds what.
pub(super) fn place<P: Scripted>(world: &mut World<P>, node: &str, words: &[&str]) -> Done {
    let mut moves = Vec::new();
    for word in words {
        let (gone, word) = word.strip_suffix('!').map_or((false, *word), |word| (true, word));
        let (out, into) = match word.split_once('>') {
            Some(both) => both,
            None if gone => (word, word),
            None => return Err("expected OUT>INTO or OUT!".to_owned()),
        };
        moves.push(Move { out: number(out)?, into: number(into)?, gone });
    }
    for id in 1..=world.count() {
        if world.is_up(id) && (node == "all" || number(node) == Ok(id)) {
            world.place(id, &moves);
        }
    }
    Ok(())
}

impl<P: Scripted> World<P> {
    /// The catalog's record after these moves.
    pub fn record(&self, moves: &[Move]) -> Keyspace {
        let options: Vec<&str> = self.options.iter().map(|option| &option[..]).collect();
        moves.iter().fold(P::record(&self.first_view, &options), moved)
    }

    /// A node's catalog has the record after these moves.
    pub fn place(&mut self, id: u64, moves: &[Move]) {
        let record = self.record(moves);
        self.tell(id, &record);
    }

    /// A node's catalog has this record.
    pub fn tell(&mut self, id: u64, record: &Keyspace) {
        let record = Arc::new(record.clone());
        self.step(id, |process, cx| process.on_news(News::Keyspace(&record), cx));
        self.settle();
    }

    /// How many keys a node stores.
    pub fn stored(&mut self, id: u64) -> usize {
        self.node(id).disk.keys()
    }
}
