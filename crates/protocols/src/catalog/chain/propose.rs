//! Getting a decree decided, whoever wants it: one wish at a time, through the consensus on what
//! follows the newest link that is known here.

use super::decree::{Entry, Origin};
use super::fold::Catalog;
use crate::catalog::message::{Message, Purpose};
use crate::catalog::state::{Doing, Running, Want, Wish};
use crate::catalog::timer::Timer;
use crate::catalog::{CatalogLane, Context, keys};
use crate::reconfigure::{self, Ground, Proposer, Step, backoff};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::keyspace::{CatalogRefusal, KeyspaceOrder};
use quorate_kernel::limits::CATALOG_ORDERS_MAX;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::time::Time;

impl CatalogLane {
    /// An operator orders something.
    pub(crate) fn on_order(
        &mut self,
        ticket: Ticket,
        order: KeyspaceOrder,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        let refusal = match &self.state.stored.catalog {
            None => Some(Refusal::Catalog(CatalogRefusal::NotLearnt)),
            // Beside them there is room for the wish in hand, and one of this host.
            Some(_) if self.state.waiting.len() + 2 >= CATALOG_ORDERS_MAX => {
                Some(Refusal::Overloaded)
            }
            Some(_) => None,
        };
        if let Some(refusal) = refusal {
            // Nothing was done, so nothing need be durable.
            return cx.fx.answer_early(ticket, Outcome::Refused(refusal));
        }
        self.wish(Some(ticket), Want::Order(order), deadline, cx);
        self.proceed(cx);
    }

    /// Puts a wish into the queue.
    pub(crate) fn wish(
        &mut self,
        ticket: Option<Ticket>,
        want: Want,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        self.state.wishes += 1;
        let origin = match &want {
            Want::Complete(entry) => entry.origin,
            _ => Origin { who: cx.me, number: self.state.wishes },
        };
        let (is_sent, is_confirmed) = (false, false);
        let wish = Wish { ticket, deadline, want, origin, is_sent, is_confirmed, there: None };
        self.state.waiting.push_back(wish);
        self.arm_deadline(cx);
    }

    /// Takes up the next wish, if none is in hand.
    pub(crate) fn proceed(&mut self, cx: &mut Context<'_>) {
        while self.state.running.is_none() {
            let Some(wish) = self.state.waiting.pop_front() else { return };
            let Some(catalog) = self.state.stored.catalog.clone() else {
                self.refuse(&wish, CatalogRefusal::NotLearnt, cx);
                continue;
            };
            if self.is_to_muster(&wish) {
                self.muster(wish, cx);
                continue;
            }
            let entry = self.entry(&wish, &catalog);
            match entry {
                Ok(Some(entry)) => self.propose(wish, &catalog, entry, cx),
                Ok(None) if self.may_end(&wish) || mutant!("catalog_fulfils_at_once") => {
                    self.fulfil(&wish, cx);
                }
                Err(refusal) if self.may_end(&wish) => self.refuse(&wish, refusal, cx),
                Ok(None) | Err(_) => {
                    // The chain may be longer than this host knows.
                    probe!("catalog/confirm");
                    self.state.questions += 1;
                    let question = self.state.questions;
                    self.begin(wish, Doing::Confirm { question }, cx);
                }
            }
        }
    }

    /// Whether a wish that cannot be, or is fulfilled, as far as this host knows, may be answered.
    fn may_end(&self, wish: &Wish) -> bool {
        wish.is_confirmed || wish.ticket.is_none() || mutant!("catalog_refuses_at_once")
    }

    fn entry(&self, wish: &Wish, catalog: &Catalog) -> Result<Option<Entry>, CatalogRefusal> {
        let decree = match &wish.want {
            Want::Order(order) => self.decree(wish, catalog, order)?,
            Want::Due(decree) => {
                catalog.judge(decree)?;
                Some(decree.clone())
            }
            Want::Complete(entry) => return Ok(Some(entry.clone())),
        };
        Ok(decree.map(|decree| Entry { origin: wish.origin, decree }))
    }

    fn propose(&mut self, wish: Wish, catalog: &Arc<Catalog>, entry: Entry, cx: &mut Context<'_>) {
        let begun = Proposer::begin(&mut self.state.rounds, Arc::clone(catalog), entry);
        match begun {
            Some((proposer, _)) => self.begin(wish, Doing::Propose(Box::new(proposer)), cx),
            None => {
                let why = "it does not fit the catalog".into();
                self.refuse(&wish, CatalogRefusal::Partitions { why }, cx);
            }
        }
    }

    pub(crate) fn begin(&mut self, wish: Wish, doing: Doing, cx: &mut Context<'_>) {
        let heard = BTreeSet::new();
        self.state.running = Some(Running { wish, doing, attempts: 0, heard });
        self.on_retry(cx);
        self.arm_deadline(cx);
    }

    /// Asks the question that is open, for the first time or again.
    pub(crate) fn on_retry(&mut self, cx: &mut Context<'_>) {
        if self.muster_again(cx) {
            return;
        }
        let version = self.state.version();
        let Some(running) = &mut self.state.running else { return };
        let message = match &mut running.doing {
            Doing::Propose(proposer) => {
                Message::Decide(Box::new(proposer.retry(&mut self.state.rounds)))
            }
            Doing::Confirm { question } => {
                Message::Length { version, purpose: Purpose::Ask(*question) }
            }
            Doing::Muster { .. } => return,
        };
        let wait = backoff(running.attempts, cx.rng);
        running.attempts += 1;
        cx.fx.arm(Timer::Retry, cx.now + wait);
        self.ask(message, cx);
    }

    /// Sends a question to the members of the system group.
    fn ask(&mut self, message: Message, cx: &mut Context<'_>) {
        if let Some(running) = &mut self.state.running
            && let Message::Decide(message) = &message
            && let reconfigure::Message::P2A { change, .. } = &**message
            && change.origin == running.wish.origin
        {
            running.wish.is_sent = true;
        }
        let Some(catalog) = &self.state.stored.catalog else { return };
        cx.fx.send(catalog.view().group(), message);
    }

    /// A step of the consensus arrives.
    pub(crate) fn on_decide(
        &mut self,
        from: Incarnation,
        message: reconfigure::Message<Entry>,
        cx: &mut Context<'_>,
    ) {
        use reconfigure::Message as M;
        let before = self.state.promised();
        match message {
            M::P1A { .. } | M::P2A { .. } => self.on_question(from, message, cx),
            M::P1B(reply) => self.step(from, cx, |proposer| proposer.on_promise(from, &reply)),
            M::P2B(reply) => self.step(from, cx, |proposer| proposer.on_accepted(from, &reply)),
            M::P3A { view, change } => self.on_entries(from, view.version, &[change], cx),
            // The chain is spread like news; nobody waits until a majority has taken over a link.
            M::P3B { .. } => {}
        }
        invariant!(self.state.promised() >= before, "neither the chain nor a promise goes back");
        invariant!(self.state.is_proposal_current(), "it proposes what follows the newest link");
    }

    /// A proposer asks this node as a member.
    fn on_question(
        &mut self,
        from: Incarnation,
        message: reconfigure::Message<Entry>,
        cx: &mut Context<'_>,
    ) {
        let Some(catalog) = &self.state.stored.catalog else {
            // A member that has just been chosen, and knows nothing yet.
            return self.say_length(from, cx);
        };
        let (asked, mine) = (message.view(), catalog.view().id);
        if asked.version > mine.version {
            probe!("catalog/behind");
            return self.say_length(from, cx);
        }
        // Who is no member of the newest view keeps silent about it; about an older one it answers
        // like everybody, and the reply points to the newer.
        if asked == mine && catalog.view().index_of(cx.me.node).is_none() {
            return;
        }
        let acceptor = &mut self.state.stored.acceptor;
        let before = acceptor.promised();
        let (reply, is_changed) = match message {
            reconfigure::Message::P1A { ballot, .. } => {
                let (reply, is_changed) = acceptor.on_prepare(catalog, asked, ballot);
                (reconfigure::Message::P1B(reply), is_changed)
            }
            reconfigure::Message::P2A { ballot, change, .. } => {
                let (reply, is_changed) = acceptor.on_accept(catalog, asked, ballot, change);
                (reconfigure::Message::P2B(reply), is_changed)
            }
            _ => return,
        };
        invariant!(acceptor.promised() >= before, "a promise never falls");
        invariant!(asked == mine || !is_changed, "only what follows the newest link is open");
        if is_changed && !mutant!("catalog_acceptor_forgets") {
            cx.fx.put_state(keys::ACCEPTOR, keys::value(acceptor));
        }
        cx.fx.send(from, Message::Decide(Box::new(reply)));
    }

    /// The proposer takes a reply.
    fn step(
        &mut self,
        from: Incarnation,
        cx: &mut Context<'_>,
        take: impl FnOnce(&mut Proposer<Entry>) -> Step<Entry>,
    ) {
        let Some(running) = &mut self.state.running else { return };
        let Doing::Propose(proposer) = &mut running.doing else { return };
        if proposer.view().index_of(from.node).is_some() {
            running.heard.insert(from.node);
        }
        match take(proposer) {
            // What a refusal named is used at the next retry.
            Step::Nothing | Step::Installed | Step::Refused { .. } => {}
            Step::Send(message) => self.ask(Message::Decide(Box::new(message)), cx),
            Step::Decided(entry) => {
                let view = proposer.view().id;
                let change = entry.clone();
                self.on_entries(cx.me, view.version, &[entry], cx);
                // Everybody is told at once; who does not hear it is told by whoever it talks to.
                let others: Arc<[NodeId]> = self.others(cx.me.node).into();
                let news = reconfigure::Message::P3A { view, change };
                cx.fx.send(&others, Message::Decide(Box::new(news)));
            }
            Step::Outpaced { .. } => {
                self.say_length(from, cx);
            }
        }
    }

    /// A node says that it knows no more than this, and has accepted nothing else. What it said of
    /// an earlier question may have been long under way: the chain may have grown since.
    pub(super) fn on_reply(
        &mut self,
        node: NodeId,
        version: u64,
        question: u64,
        cx: &mut Context<'_>,
    ) {
        let Some(catalog) = &self.state.stored.catalog else { return };
        let Some(running) = &mut self.state.running else { return };
        let is_member = catalog.view().index_of(node).is_some();
        let is_asked = match running.doing {
            Doing::Confirm { question: open } => open == question || mutant!("catalog_late_reply"),
            Doing::Propose(_) | Doing::Muster { .. } => false,
        };
        if !is_asked || !is_member || version > catalog.version() {
            return;
        }
        invariant!(!running.wish.is_confirmed, "what is confirmed asks no more");
        running.heard.insert(node);
        invariant!(self.state.questions > 0, "what is open was asked");
        if running.heard.len() >= catalog.view().majority()
            && let Some(mut running) = self.state.running.take()
        {
            running.wish.is_confirmed = true;
            self.state.waiting.push_front(running.wish);
            self.proceed(cx);
        }
    }

    /// Answers what has waited too long.
    pub(crate) fn on_deadline(&mut self, cx: &mut Context<'_>) {
        let (now, state) = (cx.now, &mut self.state);
        let mut late: Vec<Wish> = Vec::new();
        state.waiting.retain(|wish| {
            let is_late = wish.deadline <= now;
            late.extend(is_late.then(|| wish.clone()));
            !is_late
        });
        for wish in late {
            self.give_up(&wish, 0, cx);
        }
        if self.state.running.as_ref().is_some_and(|running| running.wish.deadline <= now)
            && let Some(running) = self.state.running.take()
        {
            let asks_members = !matches!(running.doing, Doing::Muster { .. });
            let counts = asks_members || mutant!("muster_is_a_quorum");
            let reached = if counts { running.heard.len() } else { 0 };
            self.give_up(&running.wish, reached, cx);
        }
        self.arm_deadline(cx);
        self.proceed(cx);
    }

    fn give_up(&self, wish: &Wish, heard: usize, cx: &mut Context<'_>) {
        if wish.is_sent {
            if mutant!("catalog_sent_is_done") {
                return self.fulfil(wish, cx);
            }
            return self.leave_open(wish, cx);
        }
        let Some(ticket) = wish.ticket else { return };
        let needed = self.state.stored.catalog.as_ref().map_or(1, |known| known.view().majority());
        let (reached, needed) = (heard as u8, needed as u8);
        // Nothing was done, so nothing need be durable.
        cx.fx.answer_early(ticket, Outcome::Refused(Refusal::NoQuorum { reached, needed }));
    }

    /// Answers that it is not known what becomes of a wish.
    pub(super) fn leave_open(&self, wish: &Wish, cx: &mut Context<'_>) {
        if let Some(ticket) = wish.ticket {
            // It promises nothing.
            cx.fx.answer_early(ticket, Outcome::Refused(Refusal::CatalogUnknown));
        }
    }

    /// Answers that a wish is fulfilled, once that is durable here.
    pub(super) fn fulfil(&self, wish: &Wish, cx: &mut Context<'_>) {
        if let Some(ticket) = wish.ticket {
            cx.fx.answer(ticket, Outcome::Noted);
        }
    }

    fn refuse(&self, wish: &Wish, refusal: CatalogRefusal, cx: &mut Context<'_>) {
        if let Some(ticket) = wish.ticket {
            cx.fx.answer(ticket, Outcome::Refused(Refusal::Catalog(refusal)));
        }
    }

    /// Arms the first deadline of all wishes.
    fn arm_deadline(&self, cx: &mut Context<'_>) {
        let running = self.state.running.iter().map(|running| running.wish.deadline);
        let all = running.chain(self.state.waiting.iter().map(|wish| wish.deadline));
        if let Some(first) = all.min() {
            cx.fx.arm(Timer::Deadline, first.max(cx.now));
        }
    }
}
