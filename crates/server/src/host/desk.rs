//! Operators' questions on the core thread: what it knows is answered at once, and an answer that a
//! lane must find takes the way of a client's request.

use super::keyspaces::{Served, Table};
use super::links::Links;
use super::questions::{Asked, Inbox, Question, Reply};
use super::{show, span};
use crate::ring::{KeyspaceReport, Report};
use quorate_doors::Clock;
use quorate_kernel::engine::Capability;
use quorate_kernel::ids::{LaneId, NodeId, Ticket};
use quorate_kernel::keyspace::{KeyspaceOrder, Keyspaces};
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::ring::{Closing, Ring};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::{Span, Time};
use quorate_node::node::Node;
use quorate_node::pump::Input;
use quorate_protocols::catalog::moves;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// Tickets from here on are an operator's; those below are clients'.
const TICKET_FIRST: u64 = 1 << 63;
/// The most questions that wait for a lane at once.
const PENDING_MAX: usize = 1024;

/// The core thread's side: takes questions, and remembers who waits for what.
pub(super) struct Desk {
    inbox: Inbox,
    /// By numbers that are never used again: an answer may still come for what has ended.
    pending: HashMap<u64, Pending>,
    last_number: u64,
    /// What this host believes of the ring.
    ring: Arc<Ring>,
    /// Whether the overlay was told that nothing is in hand for clients any more.
    has_told_idle: bool,
    /// The hosts that have numbers.
    numbers: Vec<(NodeId, u32)>,
    timeout: Span,
}

/// A question that was handed to a lane.
struct Pending {
    lane: LaneId,
    reply: oneshot::Sender<Reply>,
}

/// What a question is answered from.
pub(super) struct Sight<'a> {
    pub node: &'a Node,
    pub table: &'a Table,
    pub links: &'a mut Links,
    pub clock: Clock,
    pub inputs: &'a mut Vec<Input>,
}

impl Desk {
    pub fn new(
        inbox: Inbox,
        ring: Ring,
        numbers: Vec<(NodeId, u32)>,
        timeout: Span,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Desk {
        inbox.questions.set_wake(wake);
        Desk {
            inbox,
            pending: HashMap::new(),
            last_number: 0,
            ring: Arc::new(ring),
            has_told_idle: false,
            numbers,
            timeout,
        }
    }

    /// Takes what the node believes of the ring from now on.
    pub fn set_ring(&mut self, ring: &Arc<Ring>) {
        self.ring = Arc::clone(ring);
    }

    /// How far a shutdown of the whole cluster is here.
    pub fn closing(&self) -> Closing {
        self.ring.closing
    }

    /// Tells the overlay, once, that nothing is in hand for clients any more.
    pub fn tell_idle(&mut self, now: Time, inputs: &mut Vec<Input>) {
        if !std::mem::replace(&mut self.has_told_idle, true) {
            let (lane, control) = (LaneId::OVERLAY, Control::Idle);
            // It is not answered.
            inputs.push(Input::Control { lane, ticket: Ticket(u64::MAX), control, deadline: now });
        }
    }

    /// Answers the questions that have arrived, or hands them to a lane.
    pub fn take(&mut self, sight: &mut Sight<'_>) {
        while let Ok(Asked { question, deadline, reply }) = self.inbox.receiver.try_recv() {
            match self.consider(question, sight) {
                Ok((lane, control)) => {
                    let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
                    let left = left.map_or(self.timeout, |left| self.timeout.min(span(left)));
                    let deadline = sight.clock.now + left;
                    self.hand_over(lane, control, deadline, reply, sight.inputs);
                }
                // Whoever asked may have gone.
                Err(now) => drop(reply.send(now)),
            }
        }
    }

    /// The lane that a question is for, or its answer if the core thread knows it.
    fn consider(
        &mut self,
        question: Question,
        sight: &mut Sight<'_>,
    ) -> Result<(LaneId, Control), Reply> {
        match question {
            Question::Ring => Err(Reply::Ring(Box::new(self.report(sight)))),
            Question::Explain { keyspace, key } => {
                Ok((lane_that_explains(sight.table, &keyspace)?, Control::Explain { key }))
            }
            Question::Examine { keyspace, from } => {
                let lane = match keyspace {
                    Some(name) => served_as(sight.table, &name)?.keyspace().lane,
                    None => LaneId::CATALOG,
                };
                Ok((lane, Control::Examine { from }))
            }
            Question::Drain { host, undo } => {
                let node = self.node_of(&host)?;
                match stuck(&sight.table.records, &self.ring, node) {
                    Some(why) if !undo => Err(Reply::Refused(Refusal::Membership { why })),
                    _ => Ok((LaneId::OVERLAY, Control::Drain { node, undo })),
                }
            }
            Question::Remove { host, force } => {
                Ok((LaneId::OVERLAY, Control::Remove { node: self.node_of(&host)?, force }))
            }
            Question::Keyspaces => Err(Reply::Keyspaces(Arc::clone(&sight.table.records))),
            Question::Keyspace(order) => Ok((LaneId::CATALOG, Control::Keyspace(order))),
            Question::Replace { keyspace: name, position, host } => {
                let to = self.node_of(&host)?;
                let order = KeyspaceOrder::Replace { name, position, to };
                Ok((LaneId::CATALOG, Control::Keyspace(order)))
            }
            Question::Shutdown { force } => match lost(sight.table) {
                Some(why) if !force => Err(Reply::Refused(Refusal::Membership { why })),
                _ => Ok((LaneId::OVERLAY, Control::Shutdown)),
            },
            Question::Faults(table) => {
                sight.links.faults().set(table);
                Err(Reply::Done)
            }
        }
    }

    fn hand_over(
        &mut self,
        lane: LaneId,
        control: Control,
        deadline: Time,
        reply: oneshot::Sender<Reply>,
        inputs: &mut Vec<Input>,
    ) {
        if self.pending.len() >= PENDING_MAX {
            return drop(reply.send(Reply::Refused(Refusal::Overloaded)));
        }
        self.last_number += 1;
        self.pending.insert(self.last_number, Pending { lane, reply });
        let ticket = Ticket(TICKET_FIRST + self.last_number);
        inputs.push(Input::Control { lane, ticket, control, deadline });
    }

    /// Answers what is in hand for keyspaces that went: their lanes are gone and will not. Such
    /// questions change nothing.
    pub fn end_dropped(&mut self, table: &Table) {
        let is_open =
            |lane: LaneId| lane < LaneId::KEYSPACES || table.keyspaces().any(|it| it.lane == lane);
        for (_, gone) in self.pending.extract_if(|_, pending| !is_open(pending.lane)) {
            // Whoever asked may have gone.
            drop(gone.reply.send(Reply::Refused(Refusal::NotOpen)));
        }
    }

    /// Answers a question that was handed to a lane; gives the outcome back if the ticket is a
    /// client's.
    pub fn complete(&mut self, ticket: Ticket, outcome: Outcome) -> Option<Outcome> {
        let Some(number) = ticket.0.checked_sub(TICKET_FIRST) else { return Some(outcome) };
        let waiting = self.pending.remove(&number)?.reply;
        let reply = match outcome {
            Outcome::Explained(explanation) => Reply::Explained(explanation),
            Outcome::Examined(examination) => Reply::Examined(examination),
            Outcome::Refused(refusal) => Reply::Refused(refusal),
            Outcome::Closed { silent } => Reply::Closed(silent),
            _ => Reply::Done,
        };
        // Whoever asked may have gone.
        drop(waiting.send(reply));
        None
    }

    fn report(&self, sight: &Sight<'_>) -> Report {
        let keyspaces = sight.table.served.iter().map(|served| KeyspaceReport {
            entry: served.entry.clone(),
            groups: show::rows(sight.node, served.keyspace().lane, "groups"),
        });
        Report {
            me: sight.node.me().node,
            ring: Arc::clone(&self.ring),
            numbers: self.numbers.clone(),
            keyspaces: keyspaces.collect(),
        }
    }

    /// Hosts are called by these numbers from now on.
    pub fn set_numbers(&mut self, numbers: Vec<(NodeId, u32)>) {
        self.numbers = numbers;
    }

    /// The node that an operator means.
    fn node_of(&self, host: &str) -> Result<NodeId, Reply> {
        let number: Option<u32> = host.parse().ok();
        let is_meant = |node: NodeId, address: &str| {
            node.to_string() == host
                || address == host
                || number.is_some_and(|number| self.numbers.contains(&(node, number)))
        };
        let hosts = self.ring.hosts();
        let found = hosts.iter().find(|known| is_meant(known.who.node, &known.address));
        found.map(|host| host.who.node).ok_or_else(|| {
            let known: Vec<String> =
                hosts.iter().map(|h| format!("{} at {}", h.who.node, h.address)).collect();
            Reply::Unknown(format!("no host {host}; the ring has {}", known.join(", ")))
        })
    }
}

/// What of a node nobody could take if it left.
fn stuck(records: &Keyspaces, ring: &Ring, node: NodeId) -> Option<String> {
    records.list.iter().find_map(|(keyspace, _)| {
        let position = moves::stuck(keyspace, ring, node)?;
        let name = &keyspace.name;
        Some(format!(
            "every other host has keys of position {position} of keyspace `{name}` already; add a \
             host first"
        ))
    })
}

/// What is lost when all hosts end at one time, if anything is.
fn lost(table: &Table) -> Option<String> {
    let lost = table.keyspaces().filter(|keyspace| keyspace.durability() == Durability::Memory);
    let names: Vec<&str> = lost.map(|keyspace| keyspace.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "all that is in {} would be lost, since these keyspaces are kept in memory alone; \
             order it all the same with --force",
            names.join(", ")
        )
    })
}

fn served_as<'a>(table: &'a Table, name: &str) -> Result<&'a Served, Reply> {
    let found = table.served.iter().find(|served| served.keyspace().name == name);
    found.map(|served| &**served).ok_or_else(|| {
        Reply::Unknown(format!("no keyspace {name}; there are {}", table.names().join(", ")))
    })
}

/// The lane of a keyspace whose engine tells how it serves reads.
fn lane_that_explains(table: &Table, name: &str) -> Result<LaneId, Reply> {
    let served = served_as(table, name)?;
    let lacking = served.entry.require(Capability::Explaining, "an explanation", None);
    lacking.map_err(|why| Reply::Refused(Refusal::Lacking(Box::new(why))))?;
    Ok(served.keyspace().lane)
}

#[cfg(test)]
mod tests {
    use super::super::questions::{Questions, questions};
    use super::*;
    use quorate_kernel::ids::{Incarnation, Start};
    use quorate_kernel::ring::{RingHost, Standing};

    fn desk() -> (Arc<Questions>, Desk) {
        let (questions, inbox) = questions();
        let host = RingHost {
            who: Incarnation { node: NodeId(0xa1), start: Start(1) },
            address: String::from("127.0.0.1:7411"),
            zone: String::new(),
            tokens: vec![1],
            standing: Standing::Up,
            is_suspected: false,
        };
        let numbers = vec![(NodeId(0xa1), 7)];
        let desk = Desk::new(inbox, Ring::new(1, vec![host]), numbers, Span::secs(1), || {});
        (questions, desk)
    }

    #[test]
    fn a_host_is_meant_by_its_node_its_address_or_its_number() {
        let (_, desk) = desk();
        for name in ["00000000000000a1", "127.0.0.1:7411", "7"] {
            assert!(matches!(desk.node_of(name), Ok(NodeId(0xa1))), "{name}");
        }
        let Err(Reply::Unknown(why)) = desk.node_of("8") else { panic!("it is unknown") };
        assert!(why.contains("no host 8; the ring has 00000000000000a1 at"), "{why}");
    }

    /// Hands a question to a lane; its ticket, and where it is answered.
    fn asked(desk: &mut Desk, lane: LaneId) -> (Ticket, oneshot::Receiver<Reply>) {
        let ((reply, answer), mut inputs) = (oneshot::channel(), Vec::new());
        desk.hand_over(lane, Control::Examine { from: 7 }, Time(9), reply, &mut inputs);
        let Some(Input::Control { ticket, .. }) = inputs.pop() else { panic!("it is handed over") };
        (ticket, answer)
    }

    #[test]
    fn tickets_of_clients_are_given_back() {
        let (_, mut desk) = desk();
        let (ticket, mut answer) = asked(&mut desk, LaneId::OVERLAY);
        assert_eq!(desk.complete(Ticket(0), Outcome::written()), Some(Outcome::written()));
        assert_eq!(desk.complete(ticket, Outcome::Noted), None);
        assert!(matches!(answer.try_recv(), Ok(Reply::Done)));
        assert_eq!(desk.complete(ticket, Outcome::Noted), None, "it is answered once");
    }

    #[test]
    fn an_explanation_is_refused_where_the_engine_gives_none() {
        let all = [("plain", "linearizable", LaneId(16)), ("carts", "causal", LaneId(17))];
        let served = all.map(|(name, engine, lane)| Served::sample(name, engine, &[], lane));
        let served = served.into_iter().map(Arc::new).collect();
        let table = Table { served, ..Table::default() };
        assert!(matches!(lane_that_explains(&table, "plain"), Ok(LaneId(16))));
        let refused = lane_that_explains(&table, "carts");
        let Err(Reply::Refused(why)) = refused else { panic!("the engine cannot") };
        let text = "an explanation needs an engine with explanations; this keyspace is causal: \
                    use a keyspace of the engine linearizable";
        assert_eq!(why.to_string(), text);
        assert!(matches!(lane_that_explains(&table, "none"), Err(Reply::Unknown(_))));
    }

    #[test]
    fn what_is_in_hand_for_a_dropped_keyspace_is_answered_at_the_drop() {
        let (_, mut desk) = desk();
        let lane = |number: u32| LaneId(LaneId::KEYSPACES.0 + number);
        let table = {
            let kept = Served::sample("kept", "linearizable", &[], lane(1));
            Table { served: vec![Arc::new(kept)], ..Table::default() }
        };
        let (late, mut dropped) = asked(&mut desk, lane(0));
        let (_, mut kept) = asked(&mut desk, lane(1));
        let (_, mut decree) = asked(&mut desk, LaneId::CATALOG);
        desk.end_dropped(&table);
        assert!(matches!(dropped.try_recv(), Ok(Reply::Refused(Refusal::NotOpen))));
        assert!(kept.try_recv().is_err() && decree.try_recv().is_err(), "these lanes will answer");
        // What the lane had said before comes for nobody, also if something else is asked by now.
        let (_, mut next) = asked(&mut desk, lane(1));
        assert_eq!(desk.complete(late, Outcome::Noted), None);
        assert!(next.try_recv().is_err());
    }
}
