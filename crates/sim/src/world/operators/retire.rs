//! Hosts that end because their drain is done: an operator asks what the product's own command asks
//! ([`Control::Examine`] of every lane), until nothing is left. That such a host ends is no fault.

use super::hosts::PATIENCE;
use crate::fault::{Fault, What};
use crate::host::Running;
use crate::queue::{Event, HostIndex};
use crate::world::{NOBODY, World};
use quorate_kernel::ids::{LaneId, NodeId, Ticket};
use quorate_kernel::operation::{Control, Outcome};
use quorate_kernel::part::{Part, PartName};
use quorate_kernel::probe;
use quorate_node::pump::Input;
use quorate_store::memory::Crash;

/// How often it is asked again; a question that nobody answered is given up after more.
const AGAIN_NS: u64 = 20_000_000;
const UNANSWERED_NS: u64 = 6_000_000_000;
/// When another host forgets, at the latest, and how long it is down.
const SOON_US: u64 = 50_000;
const DOWN_US: u64 = 50_000;
/// Tickets of these questions, above those of all keyspaces.
const OF_SURVEYS: u64 = 0xffff << 48;

/// A host that is being drained to be ended.
pub(crate) struct Retiring {
    host: HostIndex,
    node: NodeId,
    other: HostIndex,
    /// Who is asked in this pass.
    asked: HostIndex,
    /// The question that is open, and since when.
    open: Option<(u64, u64)>,
    /// The lanes that have yet to be asked in this pass, the next one last.
    lanes: Vec<LaneId>,
}

/// The question that a ticket names, if it names one.
pub(crate) fn question(ticket: Ticket) -> Option<u64> {
    (ticket != NOBODY).then(|| ticket.0.checked_sub(OF_SURVEYS)).flatten()
}

impl World<'_> {
    /// An operator begins to drain a host that is to end.
    pub(crate) fn begin_retirement(&mut self, host: HostIndex, other: HostIndex) {
        self.drain(host, false);
        let node = self.machines.hosts[host].node_id;
        let (open, lanes) = (None, Vec::new());
        self.retiring = Some(Retiring { host, node, other, asked: host, open, lanes });
        self.machines.after(AGAIN_NS, Event::Survey);
    }

    /// The operator has waited long enough: the host is taken back, unless it has ended.
    pub(crate) fn end_retirement(&mut self, host: HostIndex) {
        if self.retiring.take_if(|retiring| retiring.host == host).is_some() {
            self.drain(host, true);
        }
    }

    /// Asks a host, whichever, what keeps the one that is drained: all lanes, from the beginning.
    pub(crate) fn survey(&mut self) {
        let now = self.machines.now;
        let Some(retiring) = &self.retiring else { return };
        self.machines.after(AGAIN_NS, Event::Survey);
        if retiring.open.is_some_and(|(_, since)| now < since + UNANSWERED_NS) {
            return;
        }
        let up: Vec<HostIndex> = self.up().collect();
        // Who is asked knows the catalog, as it does where it serves the command.
        let of_keyspaces = self.tenants.iter().filter(|tenant| tenant.keyspace.engine.is_some());
        let lanes: Vec<LaneId> = of_keyspaces.map(|tenant| tenant.lane()).collect();
        if up.is_empty() {
            return;
        }
        let asked = up[self.rng.below(up.len() as u64) as usize];
        if let Some(retiring) = &mut self.retiring {
            retiring.asked = asked;
            retiring.lanes = [LaneId::CATALOG].into_iter().chain(lanes).collect();
        }
        self.ask_from(0);
    }

    /// Asks the next question of a pass.
    fn ask_from(&mut self, from: u64) {
        self.surveys += 1;
        let (question, now) = (self.surveys, self.machines.now);
        let Some(retiring) = &mut self.retiring else { return };
        let Some(&lane) = retiring.lanes.last() else { return };
        let asked = retiring.asked;
        retiring.open = Some((question, now));
        let control = Control::Examine { from, leaver: Some(retiring.node) };
        let deadline = self.machines.hosts[asked].clock.local(now) + PATIENCE;
        let ticket = Ticket(OF_SURVEYS + question);
        self.machines.hosts[asked].receive(Input::Control { lane, ticket, control, deadline });
        self.machines.kick(asked);
    }

    /// An answer has come.
    pub(crate) fn on_examined(&mut self, question: u64, outcome: Outcome) {
        let Some(retiring) = &mut self.retiring else { return };
        if retiring.open.is_none_or(|(open, _)| open != question) {
            return;
        }
        retiring.open = None;
        let Outcome::Examined(examination) = outcome else { return };
        let node = retiring.node;
        let is_free = |part: &Part| part.name != PartName::Unknown && part.is_free_of(node);
        if !examination.parts.iter().all(is_free) {
            return;
        }
        if let Some(from) = examination.next {
            return self.ask_from(from);
        }
        retiring.lanes.pop();
        if retiring.lanes.is_empty() {
            self.retire();
        } else {
            self.ask_from(0);
        }
    }

    /// Nothing is left on the host, as the product says: it ends, and another one forgets.
    fn retire(&mut self) {
        let Some(Retiring { host, other, .. }) = self.retiring.take() else { return };
        if self.machines.hosts[host].running == Running::Down {
            return;
        }
        probe!("world/retired");
        self.machines.line(format_args!("** n{} is drained, and ends for good", host + 1));
        self.show_chain(false);
        let node = NodeId(self.rng.next());
        self.take_down(host, Crash::PowerLoss, true);
        self.machines.hosts[host].wipe(node);
        // What it took with it nobody needed.
        self.machines.hosts[host].is_wiped = false;
        self.machines.directory.insert(node, host);
        self.release(host);
        let at_us = self.machines.now / 1000 + self.rng.below(SOON_US);
        let what = match self.is_any_in_memory() {
            true => What::Kill { host: other },
            false => What::Power { hosts: vec![other] },
        };
        let fault = Fault { at_us, for_us: DOWN_US, what };
        self.plan.add(fault, &mut self.machines.queue);
        let up = self.up().find(|up| *up != host);
        up.into_iter().for_each(|asked| self.remove_wiped(asked));
    }
}
