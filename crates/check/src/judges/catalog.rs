//! The judge of the catalog: whether one chain of decrees explains what operators were told.
//!
//! What is promised: two hosts that know a decree of some number know the same; a name belongs to
//! one keyspace at a time and a lane to one for ever; what was acknowledged stands in the chain
//! once, what was refused does not, and nothing does that nobody asked for. Orders are
//! linearizable: each that was acknowledged takes effect where its decree stands, each that was
//! refused because of a name was right about that name at some point of the chain, and where one
//! ended before another began, its point comes first. Lists are of one host, and may be old: each
//! is the chain up to some decree, and a host never says less than it has said or acknowledged.
//!
//! Points are found without a search: the orders in the order of their beginnings each take the
//! first point that will do. That is right because nothing forbids an order to be early but the
//! orders that ended before it began.

mod chain;
#[cfg(test)]
mod tests;

pub use chain::{Chain, Decree, Known};

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use chain::Fold;
use quorate_kernel::ids::{Incarnation, NodeId};

/// Names an order of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderNumber(usize);

/// What an operator asks. Each tag is used once; a setting of the keyspace carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogOrder {
    /// A new keyspace.
    Create {
        /// Its name.
        name: String,
        /// What tells this order from all others.
        tag: u64,
    },
    /// Another setting.
    Alter {
        /// Of which keyspace.
        name: String,
        /// What tells this order from all others.
        tag: u64,
    },
    /// An end to a keyspace.
    Drop {
        /// Its name.
        name: String,
    },
}

/// How an order ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was acknowledged.
    Done,
    /// It was refused: the name is taken.
    Exists,
    /// It was refused: no keyspace has the name.
    Missing,
    /// It was refused for another reason, with the promise that nothing was changed.
    Refused,
    /// Nobody knows.
    Unknown,
}

#[derive(Clone, Debug)]
struct Order {
    ask: CatalogOrder,
    /// Whom it was asked of.
    host: Incarnation,
    ending: Ending,
    began: usize,
    ended: usize,
}

/// What a host said that there is.
#[derive(Clone, Debug)]
struct Said {
    host: NodeId,
    at: usize,
    version: u64,
    keyspaces: Known,
}

/// What operators asked and were told, and what hosts know.
#[derive(Clone, Debug, Default)]
pub struct History {
    orders: Vec<Order>,
    said: Vec<Said>,
    clock: usize,
    /// What was decided, as far as it was seen at any host.
    pub chain: Chain,
}

impl History {
    fn tick(&mut self) -> usize {
        self.clock += 1;
        self.clock
    }

    /// A host is asked something. The end is unknown until told.
    pub fn order(&mut self, host: Incarnation, ask: CatalogOrder) -> OrderNumber {
        let (began, ended) = (self.tick(), usize::MAX);
        self.orders.push(Order { ask, host, ending: Ending::Unknown, began, ended });
        OrderNumber(self.orders.len() - 1)
    }

    /// An operator was told how an order ended.
    pub fn end(&mut self, order: OrderNumber, ending: Ending) {
        let now = self.tick();
        let order = &mut self.orders[order.0];
        order.ending = ending;
        if ending != Ending::Unknown {
            order.ended = now;
        }
    }

    /// A host was asked which keyspaces there are.
    pub fn said(&mut self, host: NodeId, version: u64, keyspaces: Known) {
        let at = self.tick();
        self.said.push(Said { host, at, version, keyspaces });
    }
}

/// Judges a history.
///
/// # Errors
/// What is wrong, in one sentence.
pub fn judge(history: &History) -> Result<(), String> {
    let fold = history.chain.fold()?;
    let points = place(history, &fold)?;
    judge_said(history, &fold, &points)
}

/// Where in the chain each order took effect, or was right; `None` if it never did, or was refused
/// for a reason of its own. The decree `n` is the point `2n - 1`, and what is true after it `2n`.
fn place(history: &History, fold: &Fold) -> Result<Vec<Option<u64>>, String> {
    let mut places = Places { fold, points: Vec::new(), used: BTreeSet::new() };
    // The highest point of all that have ended so far.
    let mut ended: BTreeMap<usize, u64> = BTreeMap::new();
    let mut open: Vec<(usize, u64)> = Vec::new();
    for order in &history.orders {
        let floor = ended.range(..order.began).next_back().map_or(0, |(_, point)| *point);
        let point = match order.ending {
            Ending::Done => Some(places.of_decree(order, floor)?),
            Ending::Exists => Some(places.of_name(order, floor, true)?),
            Ending::Missing => Some(places.of_name(order, floor, false)?),
            Ending::Refused => None,
            Ending::Unknown => {
                open.push((places.points.len(), floor));
                None
            }
        };
        places.points.push(point);
        if let Some(point) = point {
            raise(&mut ended, order.ended, point);
        }
    }
    places.of_unknown(history, open)?;
    Ok(places.points)
}

/// Notes the point of an order that ended then; what ends later stands no lower.
fn raise(ended: &mut BTreeMap<usize, u64>, at: usize, point: u64) {
    let before = ended.range(..at).next_back().map_or(0, |(_, before)| *before);
    ended.insert(at, before.max(point));
    for (_, later) in ended.range_mut(at..) {
        *later = (*later).max(point);
    }
}

struct Places<'a> {
    fold: &'a Fold,
    points: Vec<Option<u64>>,
    /// The decrees that an order explains.
    used: BTreeSet<u64>,
}

impl Places<'_> {
    /// The first decree from a point on that does what was asked, and is no other order's.
    fn of_decree(&mut self, order: &Order, floor: u64) -> Result<u64, String> {
        let fits = |number: &u64| 2 * number > floor && !self.used.contains(number);
        let found = self.fold.candidates(order).find(fits);
        let Some(number) = found else {
            let early = self.fold.candidates(order).next();
            let where_it_is = early.map_or("is not in the chain".into(), |number| {
                format!("is decree {number}, before what had ended earlier or as another's")
            });
            return Err(format!("{} was acknowledged and {where_it_is}", shown(order)));
        };
        self.used.insert(number);
        Ok(2 * number - 1)
    }

    /// The first point from one on where a name was taken, or free.
    fn of_name(&self, order: &Order, floor: u64, is_taken: bool) -> Result<u64, String> {
        let first = floor.div_ceil(2).max(self.fold.first);
        let mut states = first..=self.fold.last;
        let found = states.find(|state| self.fold.is_taken(name(&order.ask), *state) == is_taken);
        found.map(|state| 2 * state).ok_or_else(|| {
            let why = if is_taken { "taken" } else { "free" };
            let last = self.fold.last;
            format!(
                "{} was refused because the name is {why}, which it was not from decree {first} to \
                 {last}",
                shown(order)
            )
        })
    }

    /// Whether orders whose end nobody knows explain what is left of the chain.
    fn of_unknown(&mut self, history: &History, mut open: Vec<(usize, u64)>) -> Result<(), String> {
        for (number, (by, _)) in &self.fold.asked {
            if self.used.contains(number) {
                continue;
            }
            let explains = |(index, floor): &(usize, u64)| {
                let order = &history.orders[*index];
                2 * number > *floor && self.fold.candidates(order).any(|each| each == *number)
            };
            let Some(at) = open.iter().position(explains) else {
                return Err(format!("nobody can have ordered decree {number} at {by}"));
            };
            let (index, _) = open.swap_remove(at);
            self.points[index] = Some(2 * number - 1);
            self.used.insert(*number);
        }
        Ok(())
    }
}

/// What hosts said: true of some version, and of none that is older than what they had said or
/// acknowledged before.
fn judge_said(history: &History, fold: &Fold, points: &[Option<u64>]) -> Result<(), String> {
    let done = |(order, point): (&Order, &Option<u64>)| {
        let number = point.filter(|_| order.ending == Ending::Done)?.div_ceil(2);
        Some((order.ended, order.host.node, number))
    };
    let mut knew: Vec<(usize, NodeId, u64)> =
        history.orders.iter().zip(points).filter_map(done).collect();
    knew.extend(history.said.iter().map(|said| (said.at, said.host, said.version)));
    knew.sort_unstable();
    let mut newest: BTreeMap<NodeId, u64> = BTreeMap::new();
    let mut said = history.said.iter().peekable();
    for (at, host, version) in knew {
        let before = newest.entry(host).or_default();
        if let Some(said) = said.next_if(|said| said.at == at) {
            if version < *before {
                return Err(format!("host {host} is at {version} and was at {before} before"));
            }
            if fold.at(version) != Some(&said.keyspaces) {
                return Err(format!(
                    "host {host} has {:?} at {version}, which is {:?}",
                    said.keyspaces,
                    fold.at(version)
                ));
            }
        }
        *before = version.max(*before);
    }
    Ok(())
}

fn name(ask: &CatalogOrder) -> &str {
    match ask {
        CatalogOrder::Create { name, .. }
        | CatalogOrder::Alter { name, .. }
        | CatalogOrder::Drop { name } => name,
    }
}

fn shown(order: &Order) -> String {
    match &order.ask {
        CatalogOrder::Create { name, tag } => format!("create {name}={tag}"),
        CatalogOrder::Alter { name, tag } => format!("alter {name}={tag}"),
        CatalogOrder::Drop { name } => format!("drop {name}"),
    }
}
