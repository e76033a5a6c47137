//! A world of groups whose logs are ideal: what is committed stays, in one order; what is not may
//! be lost with its primary; several replicas may take themselves for the primary, and only one
//! has its entries committed. What happens when is up to the test.

pub use super::node::{Disk, REPLICAS};
use super::node::{Group, Replica, show};
use crate::serializable::{
    Act, Action, Commit, Context, Input, Member, Message, Outcome, Rank, Raw, Reply, Request,
    State, Token, TxId, Version, number::Client, rules::VALUE_BYTES_MAX,
};
use crate::vsr::{Machine, Op};
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, Ticket};
use quorate_kernel::time::{Span, Time};
use std::string::{String, ToString};
use std::{format, mem, vec::Vec};

/// A message on its way to a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    pub to: GroupId,
    pub message: Message,
}

/// The world.
pub struct World {
    pub groups: Vec<Group>,
    pub now: Time,
    pub net: Vec<Envelope>,
    pub replies: Vec<(Ticket, Reply)>,
    pub trace: Vec<String>,
    pub tickets: u64,
}

pub fn tx(counter: u64, client: u64) -> TxId {
    TxId { counter, client: Client(client) }
}

pub fn key(name: &str) -> Raw {
    Raw(Bytes::copy_from_slice(name.as_bytes()))
}

pub fn put(value: &str) -> Act {
    Act::Put { value: key(value), expiry: crate::serializable::Expiry::Never }
}

impl World {
    pub fn new(groups: u64) -> World {
        let groups = (1..=groups).map(|id| Group::new(GroupId(id))).collect();
        let mut world = World {
            groups,
            now: Time(1_000_000_000_000),
            net: Vec::new(),
            replies: Vec::new(),
            trace: Vec::new(),
            tickets: 0,
        };
        for group in 0..world.groups.len() {
            world.handle(group, 0, Input::Serving);
        }
        world
    }

    /// The group of a key: its first byte is the number.
    pub fn group_of(key: &[u8]) -> GroupId {
        GroupId(u64::from(key[0] - b'0'))
    }

    pub fn at(&self, id: GroupId) -> usize {
        self.groups.iter().position(|group| group.id == id).expect("there is such a group")
    }

    /// The true primary's state.
    pub fn state(&self, group: usize) -> &State {
        &self.groups[group].replicas[self.groups[group].primary].state
    }

    pub fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// An input at a replica, and what it asks for.
    pub fn handle(&mut self, at: usize, replica: usize, input: Input) {
        let group = &mut self.groups[at];
        let is_primary = group.primary == replica;
        let its = &mut group.replicas[replica];
        let wall = (self.now.0 / 1_000_000).saturating_add_signed(its.skew_ms);
        let (mut out, is_settled) = (Vec::new(), !its.is_copying);
        let (state, table, now, life) = (&its.state, &its.disk, self.now, group.life);
        let mut cx = Context { state, is_settled, life, table, now, wall, out: &mut out };
        its.member.handle(input, &mut cx);
        let (mut not_taken, mut not_confirmed) = (0, Vec::new());
        for action in out {
            match action {
                // What another proposes is in no log that counts.
                Action::Propose(_) if group.is_full => not_taken += 1,
                Action::Propose(entry) if is_primary => group.tail.push(entry),
                Action::Confirm(ticket) if group.is_full => not_confirmed.push(ticket),
                Action::Confirm(ticket) if is_primary => group.confirms.push(ticket),
                Action::Propose(_) | Action::Confirm(_) => {}
                Action::Placed | Action::Swept { .. } => {}
                Action::Send { to, message } => {
                    self.trace.push(format!("{} -> {}  {message:?}", group.id.0, to.0));
                    self.net.push(Envelope { to, message });
                }
                Action::Reply { ticket, reply } => {
                    self.trace.push(format!("{} answers {}  {reply:?}", group.id.0, ticket.0));
                    self.replies.push((ticket, reply));
                }
            }
        }
        let refused = (not_taken > 0).then_some(Input::NotTaken(not_taken)).into_iter();
        for input in refused.chain(not_confirmed.into_iter().map(Input::NotConfirmed)) {
            self.handle(at, replica, input);
        }
    }

    pub fn handle_primary(&mut self, at: usize, input: Input) {
        let primary = self.groups[at].primary;
        self.handle(at, primary, input);
    }

    /// A client asks the primary.
    pub fn ask(&mut self, at: usize, request: Request) -> Ticket {
        let ticket = self.ticket();
        self.handle_primary(at, Input::Request { ticket, request });
        ticket
    }

    /// A client asks a group how a transaction ended that it decides.
    pub fn ask_outcome(&mut self, at: usize, tx: TxId) -> Ticket {
        let coordinator = self.groups[at].id;
        self.ask(at, Request::Outcome { token: Token { tx, coordinator } })
    }

    /// The shares of a transaction.
    pub fn shares(id: TxId, reads: &[(&str, u64)], acts: &[(&str, Act)]) -> Vec<(GroupId, Commit)> {
        let transaction = crate::serializable::Transaction {
            rank: Rank { priority: id.counter, tx: id },
            mark: 0,
            reads: reads.iter().map(|(name, version)| (key(name), Version(*version))).collect(),
            acts: acts.iter().map(|(name, act)| (key(name), act.clone())).collect(),
            goes_on: false,
            value_max: VALUE_BYTES_MAX as u64,
        };
        transaction.split(World::group_of).expect("it is within the limits")
    }

    /// A client commits: every group is asked; the ticket is that of the coordinator.
    pub fn commit_tx(&mut self, id: TxId, reads: &[(&str, u64)], acts: &[(&str, Act)]) -> Ticket {
        let tickets: Vec<Ticket> = World::shares(id, reads, acts)
            .into_iter()
            .map(|(group, share)| self.ask(self.at(group), Request::Commit(share)))
            .collect();
        tickets[0]
    }

    /// A client commits; one group alone is asked.
    pub fn commit_at(
        &mut self,
        at: usize,
        id: TxId,
        reads: &[(&str, u64)],
        acts: &[(&str, Act)],
    ) -> Ticket {
        let id_of = self.groups[at].id;
        let shares = World::shares(id, reads, acts);
        let share = shares.into_iter().find(|(group, _)| *group == id_of).expect("it is in it");
        self.ask(at, Request::Commit(share.1))
    }

    /// So many entries of the tail are committed, and executed by the primary.
    pub fn commit(&mut self, at: usize, count: usize) {
        let group = &mut self.groups[at];
        let count = count.min(group.tail.len());
        for entry in group.tail.drain(..count) {
            let shown = crate::serializable::Entry::of(&entry).expect("it is an entry");
            self.trace.push(format!("{} logs {}", group.id.0, show(&shown)));
            group.log.push(entry);
        }
        let primary = group.primary;
        self.follow(at, primary, usize::MAX);
    }

    /// A replica executes what is committed, so much of it.
    pub fn follow(&mut self, at: usize, replica: usize, count: usize) {
        if self.groups[at].primary != replica {
            // Who hears of another view's entries hears of the view.
            self.handle(at, replica, Input::Deposed);
        }
        let group = &mut self.groups[at];
        let its = &mut group.replicas[replica];
        let upto = group.log.len().min(its.applied.saturating_add(count));
        while its.applied < upto {
            let (op, entry) = (Op(its.applied as u64 + 1), group.log[its.applied].clone());
            let state = &mut its.state;
            its.disk.call(|store| state.apply(op, &entry, store));
            its.applied += 1;
        }
        let executed = its.state.take_executed();
        its.state.check();
        if group.primary == replica && !executed.is_empty() && its.member.leads() {
            self.handle(at, replica, Input::Executed(executed));
        }
    }

    /// All reads that wait are confirmed.
    pub fn confirm(&mut self, at: usize) {
        for ticket in mem::take(&mut self.groups[at].confirms) {
            self.handle_primary(at, Input::Readable(ticket));
        }
    }

    /// Delivers the first message that fits, if one does.
    pub fn deliver(&mut self, fits: impl Fn(&Envelope) -> bool) -> bool {
        let Some(place) = self.net.iter().position(fits) else { return false };
        let Envelope { to, message } = self.net.remove(place);
        self.handle_primary(self.at(to), Input::Message(message));
        true
    }

    /// Everything happens that waits for nothing but time.
    pub fn settle(&mut self) {
        loop {
            let mut is_quiet = !self.deliver(|_| true);
            for at in 0..self.groups.len() {
                is_quiet &= self.groups[at].tail.is_empty() && self.groups[at].confirms.is_empty();
                self.commit(at, usize::MAX);
                self.confirm(at);
            }
            if is_quiet {
                return;
            }
        }
    }

    /// Time passes, in steps, and everything happens.
    pub fn run_ms(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(100) {
            self.now = self.now + Span::millis(100);
            for at in 0..self.groups.len() {
                self.handle_primary(at, Input::Tick);
            }
            self.settle();
        }
    }

    /// Another replica becomes the primary, with so much of what was not committed. The old one
    /// does not know unless it is told.
    pub fn fail_over(&mut self, at: usize, next: usize, kept: usize, is_told: bool) {
        self.elect(at, next, kept, is_told);
        self.serve(at);
    }

    /// Another replica is chosen, and has not executed what it took over.
    pub fn elect(&mut self, at: usize, next: usize, kept: usize, is_told: bool) {
        let group = &mut self.groups[at];
        let before = group.primary;
        let kept = kept.min(group.tail.len());
        let tail = mem::take(&mut group.tail);
        self.trace.push(format!("{} fails over, {kept} entries are kept", group.id.0));
        group.log.extend(tail.into_iter().take(kept));
        group.confirms.clear();
        group.primary = next;
        if is_told || before == next {
            self.handle(at, before, Input::Deposed);
        }
        // One that did not know is told before it leads again.
        self.handle(at, next, Input::Deposed);
    }

    /// The one that was chosen executes what is committed, and serves.
    pub fn serve(&mut self, at: usize) {
        let group = &mut self.groups[at];
        let next = group.primary;
        let its = &mut group.replicas[next];
        while its.applied < group.log.len() {
            let (op, entry) = (Op(its.applied as u64 + 1), group.log[its.applied].clone());
            let state = &mut its.state;
            its.disk.call(|store| state.apply(op, &entry, store));
            its.applied += 1;
        }
        its.state.take_executed();
        its.state.check();
        self.handle(at, next, Input::Serving);
    }

    /// A replica starts again with what it has stored.
    pub fn restart(&mut self, at: usize, replica: usize) {
        let group = &mut self.groups[at];
        let its = &mut group.replicas[replica];
        its.member = Member::default();
        its.state = State::new(group.id);
        let state = &mut its.state;
        let stored = its.disk.call(|store| state.load(store));
        its.applied = stored.whole.0 as usize;
        // Nobody sees it before the newest entry that may be in it is executed.
        let newest = (stored.newest.0 as usize).min(group.log.len());
        self.follow(at, replica, newest.saturating_sub(stored.whole.0 as usize));
        self.groups[at].replicas[replica].state.take_executed();
    }

    /// A replica drops what it has for a copy of another, which goes on meanwhile.
    pub fn copy(
        &mut self,
        at: usize,
        from: usize,
        to: usize,
        meanwhile: &mut dyn FnMut(&mut World),
    ) {
        let source = &mut self.groups[at].replicas[from];
        let (op, head) = (source.applied, source.state.head(Op(source.applied as u64)));
        let target = &mut self.groups[at].replicas[to];
        target.member = Member::default();
        target.is_copying = true;
        let state = &mut target.state;
        target.disk.call(|store| assert!(state.begin_install(Op(op as u64), &head, store)));
        let (mut cursor, mut newest) = (Bytes::new(), op);
        loop {
            meanwhile(self);
            let source = &self.groups[at].replicas[from];
            let read = source.state.page(Op(op as u64), &cursor, 40, &source.disk);
            let page = read.expect("its pages are of any time");
            newest = newest.max(source.applied);
            let target = &mut self.groups[at].replicas[to];
            let state = &mut target.state;
            target.disk.call(|store| assert!(state.install(&page.items, store)));
            match page.next {
                Some(next) => cursor = next,
                None => break,
            }
        }
        let target = &mut self.groups[at].replicas[to];
        let state = &mut target.state;
        target.disk.call(|store| state.end_install(Op(op as u64), store));
        target.applied = op;
        self.follow(at, to, newest - op);
        let target = &mut self.groups[at].replicas[to];
        target.state.take_executed();
        target.is_copying = false;
    }

    /// What a ticket was answered.
    pub fn answer(&self, ticket: Ticket) -> Option<&Reply> {
        self.replies.iter().find(|(of, _)| *of == ticket).map(|(_, reply)| reply)
    }

    /// How a transaction ended, as its client was told.
    pub fn told(&self, ticket: Ticket) -> Option<&Outcome> {
        match self.answer(ticket)? {
            Reply::Outcome { outcome, .. } => Some(outcome),
            other => panic!("it was answered {other:?}"),
        }
    }

    pub fn is_committed(&self, ticket: Ticket) -> bool {
        matches!(self.told(ticket), Some(Outcome::Committed(_)))
    }

    /// What a key has at its true primary: version and value.
    pub fn value(&self, name: &str) -> (u64, Option<String>) {
        let at = self.at(World::group_of(name.as_bytes()));
        let its = &self.groups[at].replicas[self.groups[at].primary];
        let item = its.state.item(&key(name), &its.disk);
        let text = |raw: &Raw| String::from_utf8_lossy(raw).to_string();
        (item.version.0, item.content.map(|(value, _)| text(&value)))
    }

    /// Asserts that all replicas of a group are the same after the same entries.
    pub fn check_equal(&mut self) {
        for at in 0..self.groups.len() {
            for replica in 0..REPLICAS {
                self.follow(at, replica, usize::MAX);
            }
            let group = &self.groups[at];
            let all = |its: &Replica| {
                let (items, next) = its.state.items.range(&[], (usize::MAX, usize::MAX), &its.disk);
                assert!(next.is_none(), "all keys are in one page");
                items
            };
            for its in &group.replicas[1..] {
                assert_eq!(its.state.head, group.replicas[0].state.head, "heads are equal");
                assert_eq!(all(its), all(&group.replicas[0]), "items are equal");
            }
        }
    }

    /// Asserts that nothing is under way any more.
    pub fn check_quiet(&self) {
        for group in &self.groups {
            let state = &group.replicas[group.primary].state;
            assert!(state.head.pending.is_empty(), "{:?} votes stay", state.head.pending);
            assert!(state.locks.keys().is_empty(), "locks stay");
            assert!(state.head.taken_back.is_empty(), "votes that were taken back stay");
            assert!(state.head.revoked.is_empty(), "revocations stay");
            assert_eq!(group.replicas[group.primary].member.in_hand(), 0, "nothing is in hand");
        }
    }
}
