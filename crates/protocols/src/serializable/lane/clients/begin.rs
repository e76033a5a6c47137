//! Operations of clients begin: what is refused at once, and what is asked first.

use super::in_hand::{Doing, Phase};
use super::items::Sheet;
use crate::serializable::lane::groups::hosted::wall;
use crate::serializable::lane::places::place::{self, KEY_BYTES_MAX};
use crate::serializable::lane::{Context, Serializable};
use crate::serializable::{Rank, Raw, Refused, Transaction, Version};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use quorate_kernel::evaluate::Items;
use quorate_kernel::ids::{GroupId, NodeId, Ticket};
use quorate_kernel::limits::{GROUP_MEMBERS_MAX, OPERATIONS_MAX, SCAN_KEYS_MAX};
use quorate_kernel::mutant;
use quorate_kernel::operation::{Cursor, Operation, Outcome, Refusal};
use quorate_kernel::process::Request;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::transaction::{Item, check_bounds};

/// Of how many hosts a question is answered, of each group: those that were asked last.
const ASKED_MAX: usize = 2 * GROUP_MEMBERS_MAX;

/// What a refused request is to a client.
pub fn refusal(refused: &Refused) -> Refusal {
    let large = |what, length, limit| Refusal::TooLarge { what, length, limit };
    match *refused {
        Refused::TooManyKeys { keys, keys_max } => {
            Refusal::TooMany { count: keys, limit: keys_max }
        }
        Refused::KeyLength { bytes, bytes_max } => large("key", bytes, bytes_max),
        Refused::TooLarge { bytes, bytes_max } => large("transaction", bytes, bytes_max),
        Refused::NotPrimary
        | Refused::Groups
        | Refused::NotReady
        | Refused::Moved
        | Refused::Moving => Refusal::NoRoute,
        Refused::Busy | Refused::Held { .. } => Refusal::Overloaded,
        Refused::Empty | Refused::Reused | Refused::Counter { .. } => Refusal::Unsupported,
    }
}

impl Serializable {
    /// A client asks.
    pub(crate) fn begin(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        let deadline = request.deadline;
        let is_transaction = matches!(request.operation, Operation::Transact { .. });
        let refusal = match request.operation {
            Operation::Scan { from, limit } => {
                return self.begin_scan(ticket, deadline, (&from, limit), cx);
            }
            Operation::HowEnded { token } => {
                return self.begin_recall(ticket, deadline, &token, cx);
            }
            // Doors refuse what the engine cannot do.
            other => match Items::of(other).filter(|items| !items.list().is_empty()) {
                Some(items) => {
                    let sheet = Sheet::new(items, self.settings.value_bytes_max, wall(cx));
                    let mut doing = Doing::new(ticket, deadline, sheet);
                    doing.commits_reads = is_transaction && self.settings.commits_reads;
                    doing.reads_any = self.settings.reads_any;
                    return self.begin_items(doing, cx);
                }
                None => Refusal::Unsupported,
            },
        };
        // Nothing was done.
        cx.fx.answer_early(ticket, Outcome::Refused(refusal));
    }

    /// Why nothing can be begun now.
    pub(super) fn cannot_begin(&self) -> Option<Refusal> {
        if self.hosts.are_closing() {
            return Some(Refusal::Stopping);
        }
        if self.clients.len() >= OPERATIONS_MAX {
            return Some(Refusal::Overloaded);
        }
        let is_known = self.routes.primary(GroupId(1)).is_some();
        (!is_known).then_some(Refusal::NoRoute)
    }

    fn begin_items(&mut self, mut doing: Doing, cx: &mut Context<'_>) {
        let refusal = self.cannot_begin().or_else(|| Self::is_too_large(&doing.sheet));
        match refusal {
            // Nothing was done.
            Some(refusal) => doing.refuse(refusal, cx),
            None => self.attempt(doing, cx),
        }
    }

    fn is_too_large(sheet: &Sheet) -> Option<Refusal> {
        let (limit, mut keys) = (KEY_BYTES_MAX, sheet.items().iter().flat_map(Item::keys));
        let long = keys.find_map(|key| Some(key.len()).filter(|length| *length > limit));
        let long = long.map(|length| Refusal::TooLarge { what: "key", length, limit });
        long.or_else(|| check_bounds(sheet.items(), sheet.value_max).err())
    }

    /// One attempt at an operation: reads first, if what is done follows from them.
    pub(crate) fn attempt(&mut self, mut doing: Doing, cx: &mut Context<'_>) {
        doing.sheet.got.clear();
        doing.is_partly_done = false;
        // What was read was old: once more it would be as old.
        doing.reads_any &= doing.conflicts == 0 || mutant!("lane_reads_any_again");
        let mut waits: BTreeMap<GroupId, Vec<Raw>> = BTreeMap::new();
        for key in doing.sheet.to_read().collect::<BTreeSet<Raw>>() {
            waits.entry(self.homes.group_of(&key)).or_default().push(key);
        }
        if waits.is_empty() {
            return self.commit(doing, cx);
        }
        doing.read_from = waits.len();
        doing.phase = Phase::Reading(waits);
        self.go_on(doing, cx);
    }

    /// Everything was read: what follows from it.
    pub(super) fn has_read(&mut self, mut doing: Doing, cx: &mut Context<'_>) {
        let is_done = doing.sheet.evaluate().is_ok() && doing.sheet.changes();
        if is_done || doing.commits_reads {
            return self.commit(doing, cx);
        }
        let reads = |item: &Item| matches!(item, Item::Get { .. } | Item::Lifetime { .. });
        let may_be_old = doing.asks_any() && !mutant!("lane_refuses_by_old_reads");
        if may_be_old && !doing.sheet.items().iter().all(reads) {
            // That nothing is done rests on what is current.
            doing.reads_any = false;
            return self.attempt(doing, cx);
        }
        // It only reads, or changes nothing because of what it has read.
        let mut waits: BTreeMap<GroupId, BTreeMap<Raw, Version>> = BTreeMap::new();
        for (key, version) in doing.sheet.versions() {
            waits.entry(self.homes.group_of(&key)).or_default().insert(key, version);
        }
        // Those that have answered count: by now all of it may be at one.
        let is_of_one = doing.read_from == 1 || mutant!("lane_forgets_who_was_read");
        if (waits.len() > 1 || !is_of_one) && !mutant!("lane_reads_unchecked") {
            doing.phase = Phase::Checking(waits);
            return self.go_on(doing, cx);
        }
        // One group has read all of it at one moment.
        self.has_checked(doing, cx);
    }

    /// What was read was current at one moment, and nothing is changed.
    pub(super) fn has_checked(&mut self, mut doing: Doing, cx: &mut Context<'_>) {
        let outcome = match doing.sheet.evaluate() {
            Ok(told) => doing.sheet.outcome(told),
            Err(refusal) => Outcome::Refused(refusal),
        };
        if let Some(ticket) = doing.ticket.take() {
            // It tells what a majority has: nothing waits for this node's disk.
            cx.fx.answer_early(ticket, outcome);
        }
    }

    /// Commits: every group that it touches is asked.
    pub(crate) fn commit(&mut self, mut doing: Doing, cx: &mut Context<'_>) {
        let tx = self.clients.names.name(wall(cx));
        let priority = *doing.priority.get_or_insert(tx.counter);
        // That nothing is done because of what was read is committed, too, where it changes often.
        let is_refused = doing.commits_reads && doing.sheet.evaluate().is_err();
        let mut acts = if is_refused { Vec::new() } else { doing.sheet.acts() };
        if mutant!("lane_share_lost") {
            let first = acts.first().map(|(key, _)| self.homes.group_of(key));
            acts.retain(|(key, _)| Some(self.homes.group_of(key)) == first);
        }
        let mut reads = doing.sheet.versions();
        if mutant!("lane_commits_unchecked") {
            reads.clear();
        }
        let transaction = Transaction {
            rank: Rank { priority, tx },
            mark: self.clients.names.mark(),
            reads,
            acts,
            // A change that cannot be done is told so, and the others are done.
            goes_on: true,
            value_max: doing.sheet.value_max as u64,
        };
        match transaction.split(|key| self.homes.group_of(key)) {
            Ok(shares) => {
                doing.phase = Phase::Committing { tx, shares };
                self.go_on(doing, cx);
            }
            Err(refused) => {
                self.clients.names.close(tx);
                // Nothing was done.
                doing.refuse(refusal(&refused), cx);
            }
        }
    }

    fn begin_scan(
        &mut self,
        ticket: Ticket,
        deadline: Time,
        (from, limit): (&Cursor, u32),
        cx: &mut Context<'_>,
    ) {
        if let Some(refusal) = self.cannot_begin() {
            // Nothing was done.
            return cx.fx.answer_early(ticket, Outcome::Refused(refusal));
        }
        let from = place::from_cursor(from);
        let group = self.homes.group_of(&from);
        let most = u32::try_from(SCAN_KEYS_MAX).unwrap_or(u32::MAX);
        let limit = limit.clamp(1, most);
        let mut doing = Doing::new(ticket, deadline, Sheet::default());
        doing.phase = Phase::Listing { group, from, limit };
        self.go_on(doing, cx);
    }
}

impl Doing {
    pub(super) fn new(ticket: Ticket, deadline: Time, sheet: Sheet) -> Doing {
        Doing {
            ticket: Some(ticket),
            deadline,
            sheet,
            priority: None,
            conflicts: 0,
            commits_reads: false,
            reads_any: false,
            read_from: 0,
            is_partly_done: false,
            phase: Phase::Reading(BTreeMap::new()),
            again: Time(0),
            wait: Span(0),
            is_held: false,
            asked: BTreeMap::new(),
        }
    }

    /// Whether what is under way may change something.
    pub fn changes(&self) -> bool {
        match &self.phase {
            Phase::Committing { shares, .. } => shares.iter().any(|(_, it)| !it.acts.is_empty()),
            _ => false,
        }
    }

    /// Whether it is read of any replica what is asked now.
    pub fn asks_any(&self) -> bool {
        self.reads_any && matches!(self.phase, Phase::Reading(_))
    }

    /// A host is asked, for a group.
    pub fn note_asked(&mut self, group: GroupId, node: NodeId) {
        let asked = self.asked.entry(group).or_default();
        asked.retain(|other| *other != node);
        asked.push(node);
        asked.drain(..asked.len().saturating_sub(ASKED_MAX));
    }

    /// Whether a host was asked this question, for a group.
    pub fn has_asked(&self, group: GroupId, node: NodeId) -> bool {
        let asked = self.asked.get(&group);
        asked.is_some_and(|asked| asked.contains(&node)) || mutant!("lane_anybody_answers")
    }

    /// Tells whoever waits for it why it was not done, or may not have been.
    pub fn refuse(&mut self, refusal: Refusal, cx: &mut Context<'_>) {
        if let Some(ticket) = self.ticket.take() {
            // It rests on nothing that this node stores.
            cx.fx.answer_early(ticket, Outcome::Refused(refusal));
        }
    }
}

const _: () = assert!(
    quorate_kernel::limits::TRANSACTION_ITEMS_MAX <= crate::serializable::rules::ACTS_MAX,
    "what doors let through is no transaction of too many acts"
);
