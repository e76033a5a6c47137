//! Commands for engines that keep siblings, and are placed by a map.

use super::Scripted;
use super::script::{Done, bytes, number};
use super::world::World;
use crate::causal::map::Map;
use bytes::Bytes;
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::keyspace::Tenure;
use quorate_kernel::operation::{Control, Operation, Outcome};
use quorate_kernel::time::Time;
use std::borrow::ToOwned;
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

/// The map after these moves, as the catalog hands it to an engine, and who held what before.
pub fn moved(first: Map, moves: &[Move]) -> Bytes {
    let next = |map: Map, one: &Move| match one.into == one.out {
        true => map.without(NodeId(one.out)),
        false => map.replaced(NodeId(one.out), NodeId(one.into), one.gone),
    };
    let mut tenures: Vec<Tenure> = Vec::new();
    let map = moves.iter().fold(first, |map, one| {
        let former = map.partitions_of(NodeId(one.out)).filter_map(|at| {
            let since = map.place(at)?.since;
            Some(Tenure { partition: u32::from(at.0), since, node: NodeId(one.out) })
        });
        tenures.extend(former);
        tenures.retain(|tenure| !(one.gone && tenure.node == NodeId(one.out)));
        next(map.clone(), one)
    });
    let mut bytes = postcard::to_allocvec(&map).expect("plain data always serializes");
    bytes.extend(postcard::to_allocvec(&tenures).expect("plain data always serializes"));
    bytes.into()
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

/// Gives a node, or all that are up, a map.
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
    /// A catalog gives a node the map after these replacements.
    pub fn place(&mut self, id: u64, moves: &[Move]) {
        let options: Vec<&str> = self.options.iter().map(|option| &option[..]).collect();
        let map = P::map(&self.first_view, &options, moves);
        self.place_bytes(id, map);
    }

    /// The same, with the bytes that the catalog hands over.
    pub fn place_bytes(&mut self, id: u64, map: Bytes) {
        let control = Control::Place { map };
        // It is answered like a request, by a number of its own.
        let ticket = Ticket(self.answers.len() as u64);
        let shown = Operation::get(Bytes::from_static(b"(map)"));
        self.answers.push((shown, None));
        self.step(id, |process, cx| process.on_control(ticket, control, Time(u64::MAX), cx));
        self.settle();
    }

    /// How many keys a node stores.
    pub fn stored(&mut self, id: u64) -> usize {
        self.node(id).disk.keys()
    }
}
