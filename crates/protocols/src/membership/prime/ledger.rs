//! What the ordered reports amount to: views, one after the other.
//!
//! All of it follows from the reports and their order. So two nodes that were delivered the same
//! are in the same view, and their chains show where they were not.

use super::super::change::Change;
use super::super::codec::{put, put_list, take, take_list};
use super::super::configuration::{Configuration, Member, Shape};
use super::super::number::{Digest, Number, RollId};
use super::super::observe::Rings;
use crate::epto::EventKey;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::{ROLL_JOINERS_MAX, ROLL_MEMBERS_MAX};
use quorate_kernel::{invariant, mutant};
use serde::{Deserialize, Serialize};

/// How many views' names are remembered and told.
pub(super) const CHAIN_MAX: usize = 32;
/// How many nodes at once may be reported.
const COUNTS_MAX: usize = ROLL_MEMBERS_MAX + ROLL_JOINERS_MAX;

/// What a member says of another node; of itself, that it leaves. The payload of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// This one does not answer its observer.
    Down(NodeId),
    /// It answers again: what was said of it is taken back.
    Well(NodeId),
    /// This one wants to be a member.
    Joins(Arc<Member>),
    /// The reporter leaves.
    Leaves,
}

/// The observers' word on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Count {
    /// The rings whose observers have reported it, one bit each.
    rings: u16,
    /// Who it will be, if it joins: as its first observer said.
    member: Option<Arc<Member>>,
}

/// One step of a history: a view, and the report that made it; the founders' view none has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The view.
    pub view: RollId,
    /// The name of the report. Those of later steps come later in the order.
    pub by: Option<EventKey>,
}

/// The view that a node is in, and what is reported in it.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    configuration: Arc<Configuration>,
    rings: Rings,
    counts: BTreeMap<NodeId, Count>,
    /// The last report that was taken in.
    last: Option<EventKey>,
    /// Of all reports that were taken in, in their order.
    heard: Digest,
    /// The newest views, this one last.
    chain: VecDeque<Step>,
}

impl PartialEq for Ledger {
    /// Rings follow from the configuration.
    fn eq(&self, other: &Ledger) -> bool {
        let parts = |it: &Ledger| (it.configuration.id, it.last, it.heard);
        parts(self) == parts(other) && self.counts == other.counts && self.chain == other.chain
    }
}

impl Eq for Ledger {}

/// How many rings' observers must report a node: more than half.
fn wanted(shape: Shape) -> u32 {
    if mutant!("prime_one_report_is_enough") {
        return 1;
    }
    u32::from(shape.rings) / 2 + 1
}

impl Ledger {
    /// That of a view in which nothing is reported yet.
    pub fn new(configuration: Configuration) -> Ledger {
        let founding = Step { view: configuration.id, by: None };
        Ledger {
            rings: Rings::of(&configuration),
            configuration: Arc::new(configuration),
            counts: BTreeMap::new(),
            last: None,
            heard: founding.view.digest,
            chain: VecDeque::from([founding]),
        }
    }

    pub fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    pub fn rings(&self) -> &Rings {
        &self.rings
    }

    pub fn last(&self) -> Option<EventKey> {
        self.last
    }

    /// What names the reports that were taken in: where it is the same all else is.
    pub fn heard(&self) -> Digest {
        self.heard
    }

    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        self.chain.iter().copied()
    }

    pub fn chain(&self) -> impl DoubleEndedIterator<Item = RollId> + '_ {
        self.chain.iter().map(|step| step.view)
    }

    /// Whether a node's word on another one counts now.
    pub fn has_reported(&self, observer: NodeId, subject: NodeId) -> bool {
        let rings = self.counts.get(&subject).map_or(0, |count| count.rings);
        rings & self.rings.between(observer, subject) != 0
    }

    /// Takes in the next report. Returns whether it makes another view.
    pub fn apply(&mut self, key: EventKey, report: &Report) -> bool {
        let is_next = self.last.is_none_or(|last| key > last);
        invariant!(is_next, "reports are taken in in their order");
        self.last = Some(key);
        let mut heard = Vec::new();
        put(&mut heard, &(self.heard, key, report));
        self.heard = Digest::of(&heard);
        let reporter = key.source.node;
        if !self.configuration.contains(reporter) {
            return false;
        }
        let change = match report {
            Report::Down(subject) if self.configuration.contains(*subject) => {
                let is_out = self.count(reporter, *subject, None);
                is_out.then(|| Change::new(Vec::new(), Vec::from([*subject])))
            }
            Report::Joins(member) if self.may_join(member) => {
                let subject = member.id;
                let is_in = self.count(reporter, subject, Some(member));
                let member = self.counts.get(&subject).and_then(|count| count.member.clone());
                let member = member.filter(|_| is_in);
                member.map(|member| Change::new(Vec::from([member]), Vec::new()))
            }
            Report::Well(subject) => {
                self.take_back(reporter, *subject);
                None
            }
            Report::Leaves => Some(Change::new(Vec::new(), Vec::from([reporter]))),
            Report::Down(_) | Report::Joins(_) => None,
        };
        let change = change.filter(|change| self.configuration.may_follow(change));
        change.is_some_and(|change| self.change(key, &change))
    }

    fn may_join(&self, member: &Member) -> bool {
        let configuration = &self.configuration;
        let is_new = !configuration.contains(member.id) && !configuration.has_left(member.id);
        is_new && member.is_well_formed()
    }

    /// One observer more. Returns whether that is enough.
    fn count(&mut self, observer: NodeId, subject: NodeId, member: Option<&Arc<Member>>) -> bool {
        let rings = self.rings.between(observer, subject);
        if !self.counts.contains_key(&subject) && self.counts.len() >= COUNTS_MAX {
            return false;
        }
        let new = || Count { rings: 0, member: member.cloned() };
        let count = self.counts.entry(subject).or_insert_with(new);
        count.rings |= rings;
        let is_enough = count.rings.count_ones() >= wanted(self.configuration.shape);
        if count.rings == 0 {
            self.counts.remove(&subject);
        }
        is_enough
    }

    fn take_back(&mut self, observer: NodeId, subject: NodeId) {
        let rings = self.rings.between(observer, subject);
        if mutant!("prime_takes_nothing_back") {
            return;
        }
        if let Some(count) = self.counts.get_mut(&subject) {
            count.rings &= !rings;
            if count.rings == 0 {
                self.counts.remove(&subject);
            }
        }
    }

    fn change(&mut self, by: EventKey, change: &Change) -> bool {
        let next = self.configuration.after(change);
        invariant!(next.id.number == self.configuration.id.number.next(), "views are numbered");
        let joined = change.joins.iter().map(|member| member.id);
        joined.chain(change.leaves.iter().copied()).for_each(|node| _ = self.counts.remove(&node));
        self.rings = Rings::of(&next);
        self.chain.push_back(Step { view: next.id, by: Some(by) });
        if self.chain.len() > CHAIN_MAX {
            self.chain.pop_front();
        }
        self.configuration = Arc::new(next);
        true
    }

    /// Whether another node's view is of another chain, as far as this one remembers.
    pub fn differs(&self, other: RollId) -> bool {
        let known = self.chain().find(|view| view.number == other.number);
        known.is_some_and(|known| known.digest != other.digest)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, &(self.last, self.heard));
        put_list(&mut out, &self.steps().collect::<Vec<_>>());
        put_list(&mut out, &self.counts.iter().collect::<Vec<_>>());
        out.extend(self.configuration.encode());
        out
    }

    /// Reads one; none if no correct peer has it.
    pub fn decode(mut bytes: &[u8]) -> Option<Ledger> {
        let (last, heard): (Option<EventKey>, Digest) = take(&mut bytes)?;
        let chain: Vec<Step> = take_list(&mut bytes, CHAIN_MAX)?;
        let counts: Vec<(NodeId, Count)> = take_list(&mut bytes, COUNTS_MAX)?;
        let configuration = Configuration::decode(bytes)?;
        let follows =
            |two: &[Step]| two[0].view.number.next() == two[1].view.number && two[0].by < two[1].by;
        let is_chain = chain.last().map(|step| step.view) == Some(configuration.id)
            && chain.last().is_some_and(|step| step.by <= last)
            && chain.windows(2).all(follows)
            && chain.iter().all(|step| step.view.number > Number(0));
        let is_well_formed = |(node, count): &(NodeId, Count)| {
            let member = count.member.as_ref();
            member.is_none_or(|member| member.id == *node && member.is_well_formed())
                && configuration.contains(*node) == member.is_none()
        };
        let is_sound = is_chain && counts.iter().all(is_well_formed);
        let ledger = Ledger { last, heard, ..Ledger::new(configuration) };
        let (chain, counts) = (chain.into(), counts.into_iter().collect());
        is_sound.then_some(Ledger { chain, counts, ..ledger })
    }

    pub fn check(&self) {
        invariant!(self.counts.len() <= COUNTS_MAX, "what is reported is bounded");
        invariant!(self.chain().next_back() == Some(self.configuration.id), "a chain ends here");
    }
}
