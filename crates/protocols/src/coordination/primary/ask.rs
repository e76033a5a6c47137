//! What gateways ask.

use super::{Primary, Served, questions};
use crate::coordination::hosted::Hosted;
use crate::coordination::message::{GatewayAsks, GatewayNews, Message};
use crate::coordination::timer::Timer;
use crate::coordination::tree::{Command, Tree};
use crate::coordination::{Context, Coordination};
use crate::smr::{Entry, Executed, Origin, Part, Replicated};
use crate::vsr::Op;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;

/// About the most bytes of the commands of one entry; one command more always fits.
const ENTRY_BYTES_MAX: usize = 250 * 1000;
/// The most commands of one entry.
const ENTRY_COMMANDS_MAX: usize = 1024;
/// About the most bytes of answers that one turn makes; one answer more always fits.
const ANSWERS_MAX: usize = 8 * 1024 * 1024;

impl Coordination {
    /// A gateway asks, or says that it is there.
    pub(crate) fn on_ask(&mut self, from: Incarnation, ask: GatewayAsks, cx: &mut Context<'_>) {
        let life = self.hosted.as_ref().map_or(0, Hosted::life);
        let leading = self.hosted.as_mut().and_then(|it| Some((&it.machine, it.primary.as_mut()?)));
        let Some((machine, primary)) = leading else { return self.say_who_leads(from, cx) };
        if machine.has_ended(from) {
            let told = GatewayNews { has_ended: true, ..GatewayNews::default() };
            // It rests on a majority.
            return cx.fx.send_early(from, Message::Told(told));
        }
        if ask.life != Some(life) && !mutant!("tree_counts_over_losses") {
            // What it has asked and knows may be lost, and numbers may have been given again.
            let done = machine.client(from).map_or(0, |client| client.done);
            let told = GatewayNews {
                turn: ask.turn,
                view: primary.view,
                life,
                done,
                ..GatewayNews::default()
            };
            // It rests on a majority.
            return cx.fx.send_early(from, Message::Told(told));
        }
        let served = primary.gateways.entry(from.node).or_insert_with(|| Served::new(from));
        let is_new = served.client.start < from.start;
        if is_new {
            *served = Served::new(from);
        }
        let is_late = served.client != from || ask.turn < served.turn;
        if is_late && !mutant!("tree_hears_late_asks") {
            return;
        }
        let done = machine.client(from).map_or(0, |client| client.done);
        let begins = is_new || ask.turn > served.turn;
        if begins && !mutant!("tree_tickets_outlive_turns") {
            // That this node led after an earlier question with this number says nothing of a new
            // one.
            primary.tickets.retain(|_, (node, _)| *node != from.node);
        }
        if ask.turn > served.turn {
            served.resume((ask.turn, ask.seen, ask.acked), machine);
        }
        primary.heard.insert(from, cx.now);
        if ask.touch >= served.touch || mutant!("tree_follows_as_heard_last") {
            // One that was sent earlier and comes later says what was so then.
            served.follows = ask.follows;
        }
        served.touch = served.touch.max(ask.touch);
        served.is_owed = true;
        served.acked = served.acked.max(ask.acked);
        served.done.acknowledge(served.acked);
        served.proposed = served.proposed.max(done);
        if let Some(part) = served.take(ask.first, ask.commands, cx) {
            primary.parts.push_back(part);
        }
        let asked = served.take_questions(ask.questions);
        invariant!(served.proposed >= done, "what was executed was put into the log");
        invariant!(served.touch_confirmed <= served.touch, "what is confirmed was heard");
        for number in asked {
            self.confirm((from.node, number), cx);
        }
    }

    /// Asks whether this node still leads, for a question.
    fn confirm(&mut self, question: (NodeId, u64), cx: &mut Context<'_>) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let Some(primary) = self.hosted.as_mut().and_then(|it| it.primary.as_mut()) else { return };
        primary.tickets.insert(ticket, question);
        if mutant!("read_index_without_round") {
            return self.readable(ticket, cx);
        }
        let mut is_taken = false;
        self.call(cx, |log, _| is_taken = log.read(ticket).is_ok());
        if !is_taken && let Some(primary) = self.hosted.as_mut().and_then(|it| it.primary.as_mut())
        {
            // The gateway asks again.
            primary.tickets.remove(&ticket);
            if let Some(served) = primary.gateways.get_mut(&question.0) {
                served.questions.remove(&question.1);
            }
        }
    }

    /// Asks whether this node still leads, for all touches that have come: a primary that is cut
    /// off is not to hold clients whose sessions end elsewhere.
    pub(super) fn confirm_touches(&mut self, cx: &mut Context<'_>) {
        let Some(primary) = self.hosted.as_mut().and_then(|it| it.primary.as_mut()) else { return };
        let has_new = primary.gateways.values().any(|it| it.touch > it.touch_confirmed);
        if !has_new || primary.touched.is_some() {
            return;
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        primary.touched = Some(ticket);
        primary.gateways.values_mut().for_each(|it| it.touch_asked = it.touch);
        let mut is_taken = false;
        self.call(cx, |log, _| is_taken = log.read(ticket).is_ok());
        let is_confirmed = mutant!("tree_touch_unconfirmed");
        if is_confirmed {
            self.readable(ticket, cx);
        } else if !is_taken
            && let Some(primary) = self.hosted.as_mut().and_then(|it| it.primary.as_mut())
        {
            // At the next tick.
            primary.touched = None;
        }
    }

    /// This node has led after the question.
    pub(crate) fn readable(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        let Some(hosted) = &mut self.hosted else { return };
        let Some(primary) = &mut hosted.primary else { return };
        if primary.touched.take_if(|it| *it == ticket).is_some() {
            primary.confirm(cx.now);
            let applied = hosted.replica.applied();
            let gateways = primary.gateways.values_mut();
            return gateways.for_each(|served| served.confirm_touch(applied));
        }
        let Some((node, number)) = primary.tickets.remove(&ticket) else { return };
        let Some(served) = primary.gateways.get_mut(&node) else { return };
        let Some(waiting) = served.questions.get_mut(&number) else { return };
        waiting.is_confirmed = true;
        let (after, client) = (waiting.asked.after, served.client);
        if after > hosted.machine.client(client).map_or(0, |client| client.done) {
            served.behind.insert((after, number));
        } else {
            primary.ready.push_back((node, number));
        }
    }

    /// Commands were executed: questions that wait for them can be answered.
    pub(crate) fn executed(&mut self, executed: &[Executed]) {
        let Some(hosted) = &mut self.hosted else { return };
        let Some(primary) = &mut hosted.primary else { return };
        for Executed { client, number } in executed {
            let served = primary.gateways.get_mut(&client.node);
            let Some(served) = served.filter(|it| it.client == *client) else { continue };
            let is_done = |(after, _): &(u64, u64)| after <= number;
            while let Some((_, question)) = served.behind.first().copied().filter(is_done) {
                served.behind.pop_first();
                primary.ready.push_back((client.node, question));
            }
        }
    }

    /// Answers questions; the next turn goes on.
    pub(super) fn answer_ready(&mut self, cx: &mut Context<'_>) {
        let Some(hosted) = &mut self.hosted else { return };
        let Some(primary) = &mut hosted.primary else { return };
        if !primary.answer_some(&hosted.machine) {
            cx.fx.arm(Timer::Again, cx.now);
        }
    }

    /// Puts what the turn has brought into the log.
    pub(crate) fn propose(&mut self, cx: &mut Context<'_>) {
        while let Some(entry) = self.next_entry(cx) {
            let bytes = entry.bytes();
            let mut is_taken = false;
            self.call(cx, |log, on| is_taken = log.propose(bytes.clone(), on).is_ok());
            let has_own = entry.parts.iter().any(|part| part.from.is_none());
            if is_taken {
                let Some(hosted) = &mut self.hosted else { return };
                if let Some(primary) = hosted.primary.as_mut().filter(|_| has_own) {
                    primary.own = hosted.replica.log().end();
                }
                hosted.machine.proposed(bytes, entry);
            } else {
                // Later: it may be too much at once, or the members change.
                if let Some(primary) = self.hosted.as_mut().and_then(|it| it.primary.as_mut()) {
                    for part in entry.parts.into_iter().rev() {
                        let bytes = part.commands.iter().map(Command::bytes).sum();
                        primary.parts.push_front((part, bytes));
                    }
                }
                return;
            }
        }
    }

    fn next_entry(&mut self, cx: &Context<'_>) -> Option<Entry<Tree>> {
        let primary = self.hosted.as_mut()?.primary.as_mut()?;
        let (mut bytes, mut count, mut parts) = (0, 0, Vec::new());
        while let Some((part, size)) = primary.parts.front() {
            let is_full =
                bytes + size > ENTRY_BYTES_MAX || count + part.commands.len() > ENTRY_COMMANDS_MAX;
            if is_full && !parts.is_empty() {
                break;
            }
            bytes += size;
            count += part.commands.len();
            parts.extend(primary.parts.pop_front().map(|(part, _)| part));
        }
        let at_ms = u64::try_from(cx.wall.0).unwrap_or_default();
        (!parts.is_empty()).then_some(Entry { at_ms, parts })
    }
}

impl Primary {
    /// Answers questions in their order, as many as one turn should; whether these are all. What is
    /// executed meanwhile they may show as well, as nothing is told of them yet.
    pub(super) fn answer_some(&mut self, machine: &Replicated<Tree>) -> bool {
        let mut spent = 0;
        while let Some((node, number)) = self.ready.front().copied() {
            if spent >= ANSWERS_MAX && !mutant!("tree_answers_all_in_one_turn") {
                probe!("coordination/answers_wait");
                return false;
            }
            self.ready.pop_front();
            let Some(served) = self.gateways.get_mut(&node) else { continue };
            let is_asked = served.questions.get(&number).is_some_and(|it| it.is_confirmed);
            if is_asked && (served.holds_back() || !served.held.is_empty()) {
                probe!("coordination/holds_questions");
                served.held.push_back(number);
                continue;
            }
            spent += served.answer(number, machine);
        }
        invariant!(
            spent < ANSWERS_MAX + questions::ANSWER_MAX,
            "one answer more than there is room for"
        );
        invariant!(self.ready.is_empty(), "all are answered");
        true
    }

    /// Questions of a gateway that were held back are answered next, if they need not be any more;
    /// whether there are any.
    pub(super) fn release(&mut self, node: NodeId) -> bool {
        let served = self.gateways.get_mut(&node).filter(|it| !it.held.is_empty());
        let Some(served) = served.filter(|it| !it.holds_back()) else { return false };
        for number in core::mem::take(&mut served.held).into_iter().rev() {
            self.ready.push_front((node, number));
        }
        true
    }
}

impl Served {
    /// The gateway asks everything anew, and what it was told since is told again.
    pub(super) fn resume(
        &mut self,
        (turn, seen, acked): (u64, u64, u64),
        machine: &Replicated<Tree>,
    ) {
        let client = machine.client(self.client);
        // One of which nothing was executed has nothing that can have changed: it lacks nothing.
        let is_new = seen == 0 && client.is_none() && !mutant!("tree_lacks_what_never_was");
        let upto = if is_new { machine.changes().last() } else { seen };
        (self.turn, self.number, self.upto) = (turn, 0, upto);
        (self.news, self.news_bytes) = (Vec::new(), 0);
        self.looked_up.clear();
        self.done.resume(acked);
        self.questions.clear();
        self.behind.clear();
        self.held.clear();
    }

    /// What of these commands is new, to be put into the log, and about how many bytes it has.
    fn take(
        &mut self,
        first: u64,
        commands: Vec<Command>,
        cx: &mut Context<'_>,
    ) -> Option<(Part<Tree>, usize)> {
        let (mut begin, mut taken, mut bytes) = (None, Vec::new(), 0);
        for (command, number) in commands.into_iter().zip(first..) {
            if number <= self.proposed && !mutant!("tree_proposes_twice") {
                continue;
            }
            if number > self.proposed + 1 {
                // What is before it has not come: the gateway asks anew.
                probe!("coordination/gap");
                break;
            }
            if !is_of(&command, self.client) {
                cx.fx.refuse("a gateway asks for its own clients");
                break;
            }
            begin.get_or_insert(number);
            self.proposed = number;
            bytes += command.bytes();
            taken.push(command);
        }
        let from = Origin { client: self.client, first: begin?, acked: self.acked };
        Some((Part { from: Some(from), commands: taken }, bytes))
    }

    /// This node has led after the touches that were heard when that was asked, and has applied all
    /// that was acknowledged before.
    fn confirm_touch(&mut self, applied: Op) {
        if self.touch_asked > self.touch_confirmed {
            (self.touch_confirmed, self.is_owed) = (self.touch_asked, true);
            self.applied = Some(applied);
        }
    }
}

/// Whether a command is of a gateway's own clients.
fn is_of(command: &Command, gateway: Incarnation) -> bool {
    match command {
        Command::One(who, _) | Command::All(who, _) | Command::Put(who, ..) => {
            who.gateway == gateway
        }
        Command::Close(who) => who.gateway == gateway,
        Command::Ask(question) => question.who().is_some_and(|who| who.gateway == gateway),
        Command::Open { gateway: of, .. } | Command::Attach { gateway: of, .. } => *of == gateway,
        Command::Expire { .. } => true,
        Command::Reap { .. } | Command::Begin { .. } => false,
    }
}
