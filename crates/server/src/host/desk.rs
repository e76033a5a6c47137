//! Where operators' questions reach the core thread: a queue, and the waker that the loop has
//! anyway. An answer that a lane must find takes the way of a client's request.

use super::keyspaces::Table;
use super::links::Links;
use super::{Fault, show};
use crate::ring::{KeyspaceReport, Report};
use bytes::Bytes;
use quorate_doors::resp::Clock;
use quorate_kernel::ids::{LaneId, NodeId, Ticket};
use quorate_kernel::keyspace::{KeyspaceOrder, Keyspaces};
use quorate_kernel::operation::{Control, Explanation, Outcome, Refusal};
use quorate_kernel::ring::{Closing, Ring};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::{Span, Time};
use quorate_node::catalog::{Catalog, Keyspace};
use quorate_node::factory::catalog::moves;
use quorate_node::node::Node;
use quorate_node::pump::Input;
use slab::Slab;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

/// Tickets from here on are an operator's; those below are clients'.
const TICKET_FIRST: u64 = 1 << 63;
/// The most questions that wait for a lane at once.
const PENDING_MAX: usize = 1024;

/// What an operator can ask of a running host.
#[derive(Debug)]
pub enum Question {
    /// What it believes of the ring, and the groups it knows.
    Ring,
    /// Read a key, and tell how.
    Explain {
        /// The keyspace.
        keyspace: String,
        /// The key.
        key: Bytes,
    },
    /// Which group holds a position.
    Examine {
        /// The keyspace.
        keyspace: String,
        /// The position.
        position: u64,
    },
    /// Have a host hand over all it holds, or take part again.
    Drain {
        /// Its node id, address or number.
        host: String,
        /// Whether it shall take part again.
        undo: bool,
    },
    /// Count a host as gone for good.
    Remove {
        /// Its node id, address or number.
        host: String,
    },
    /// Which keyspaces there are.
    Keyspaces,
    /// Make, alter or drop a keyspace.
    Keyspace(KeyspaceOrder),
    /// Have another host hold a position of a keyspace.
    Replace {
        /// The keyspace.
        keyspace: String,
        /// Which position.
        position: u32,
        /// The host's node id, address or number.
        host: String,
    },
    /// Have all hosts end at one time.
    Shutdown {
        /// Although that loses what keyspaces keep in memory alone.
        force: bool,
    },
    /// Replace the faults that frames to other hosts meet.
    Faults(BTreeMap<NodeId, Fault>),
}

/// What is answered.
#[derive(Debug)]
pub enum Reply {
    /// The ring and the groups.
    Ring(Box<Report>),
    /// The keyspaces, as far as this host knows.
    Keyspaces(Arc<Keyspaces>),
    /// How a read was served.
    Explained(Box<Explanation>),
    /// The cluster ends, but for these nodes: they were not reached.
    Closed(Vec<NodeId>),
    /// It was done: the overlay knows, or the faults are in force.
    Done,
    /// It was refused.
    Refused(Refusal),
    /// It names something that does not exist; what, and what there is.
    Unknown(String),
}

struct Asked {
    question: Question,
    reply: oneshot::Sender<Reply>,
}

/// The outside's end of the queue.
pub struct Questions {
    sender: Sender<Asked>,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// The core thread's end of the queue.
pub struct Inbox {
    receiver: Receiver<Asked>,
    questions: Arc<Questions>,
}

/// Both ends of a queue of questions.
#[must_use]
pub fn questions() -> (Arc<Questions>, Inbox) {
    let (sender, receiver) = channel();
    let questions = Arc::new(Questions { sender, wake: OnceLock::new() });
    (Arc::clone(&questions), Inbox { receiver, questions })
}

impl Questions {
    /// Asks; `None` if the host ends before it answers. The caller sees to the time.
    pub async fn ask(&self, question: Question) -> Option<Reply> {
        let (reply, answer) = oneshot::channel();
        self.sender.send(Asked { question, reply }).ok()?;
        // Before there is a waker there is no loop that sleeps.
        if let Some(wake) = self.wake.get() {
            wake();
        }
        answer.await.ok()
    }
}

/// The core thread's side: takes questions, and remembers who waits for what.
pub(super) struct Desk {
    inbox: Inbox,
    pending: Slab<oneshot::Sender<Reply>>,
    /// What this host believes of the ring.
    ring: Arc<Ring>,
    /// Whether the overlay was told that nothing is in hand for clients any more.
    has_told_idle: bool,
    /// The hosts that have numbers.
    numbers: Vec<(NodeId, u32)>,
    timeout: Span,
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
        // The queue is made for one desk, so nothing else has set it.
        let _ = inbox.questions.wake.set(Box::new(wake));
        Desk {
            inbox,
            pending: Slab::new(),
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
        while let Ok(Asked { question, reply }) = self.inbox.receiver.try_recv() {
            match self.consider(question, sight) {
                Ok((lane, control)) => self.hand_over(lane, control, reply, sight),
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
                let lane = lane_of(&sight.table.catalog, &keyspace)?;
                Ok((lane, Control::Explain { key }))
            }
            Question::Examine { keyspace, position } => {
                let lane = lane_of(&sight.table.catalog, &keyspace)?;
                Ok((lane, Control::Examine { position }))
            }
            Question::Drain { host, undo } => {
                let node = self.node_of(&host)?;
                match stuck(&sight.table.records, &self.ring, node) {
                    Some(why) if !undo => Err(Reply::Refused(Refusal::Membership { why })),
                    _ => Ok((LaneId::OVERLAY, Control::Drain { node, undo })),
                }
            }
            Question::Remove { host } => {
                Ok((LaneId::OVERLAY, Control::Remove { node: self.node_of(&host)? }))
            }
            Question::Keyspaces => Err(Reply::Keyspaces(Arc::clone(&sight.table.records))),
            Question::Keyspace(order) => Ok((LaneId::CATALOG, Control::Keyspace(order))),
            Question::Replace { keyspace: name, position, host } => {
                let to = self.node_of(&host)?;
                let order = KeyspaceOrder::Replace { name, position, to };
                Ok((LaneId::CATALOG, Control::Keyspace(order)))
            }
            Question::Shutdown { force } => match lost(&sight.table.catalog) {
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
        reply: oneshot::Sender<Reply>,
        sight: &mut Sight<'_>,
    ) {
        if self.pending.len() >= PENDING_MAX {
            return drop(reply.send(Reply::Refused(Refusal::Overloaded)));
        }
        let ticket = Ticket(TICKET_FIRST + self.pending.insert(reply) as u64);
        let deadline = sight.clock.now + self.timeout;
        sight.inputs.push(Input::Control { lane, ticket, control, deadline });
    }

    /// Answers a question that was handed to a lane; gives the outcome back if the ticket is a
    /// client's.
    pub fn complete(&mut self, ticket: Ticket, outcome: Outcome) -> Option<Outcome> {
        let Some(key) = ticket.0.checked_sub(TICKET_FIRST) else { return Some(outcome) };
        let waiting = self.pending.try_remove(key as usize)?;
        let reply = match outcome {
            Outcome::Explained(explanation) => Reply::Explained(explanation),
            Outcome::Refused(refusal) => Reply::Refused(refusal),
            Outcome::Closed { silent } => Reply::Closed(silent),
            _ => Reply::Done,
        };
        // Whoever asked may have gone.
        drop(waiting.send(reply));
        None
    }

    fn report(&self, sight: &Sight<'_>) -> Report {
        let keyspaces = sight.table.catalog.keyspaces.iter().map(|keyspace| KeyspaceReport {
            name: keyspace.name.clone(),
            replicas: keyspace.replicas,
            order: keyspace.order.to_string(),
            mode: keyspace.mode.to_string(),
            groups: show::rows(sight.node, keyspace.lane, "groups"),
        });
        Report {
            me: sight.node.me().node,
            ring: Arc::clone(&self.ring),
            numbers: self.numbers.clone(),
            keyspaces: keyspaces.collect(),
        }
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
fn lost(catalog: &Catalog) -> Option<String> {
    let is_lost = |keyspace: &&Keyspace| keyspace.durability == Durability::Memory;
    let names = catalog.keyspaces.iter().filter(is_lost).map(|keyspace| keyspace.name.as_str());
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| {
        format!(
            "all that is in {} would be lost, since these keyspaces are kept in memory alone; \
             order it all the same with --force",
            names.join(", ")
        )
    })
}

fn lane_of(catalog: &Catalog, name: &str) -> Result<LaneId, Reply> {
    let found = catalog.keyspaces.iter().find(|keyspace| keyspace.name == name);
    found.map(|keyspace| keyspace.lane).ok_or_else(|| {
        let names: Vec<&str> = catalog.keyspaces.iter().map(|k| k.name.as_str()).collect();
        Reply::Unknown(format!("no keyspace {name}; there are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn tickets_of_clients_are_given_back() {
        let (_, mut desk) = desk();
        let (reply, mut answer) = oneshot::channel();
        let ticket = Ticket(TICKET_FIRST + desk.pending.insert(reply) as u64);
        assert_eq!(desk.complete(Ticket(0), Outcome::Written), Some(Outcome::Written));
        assert_eq!(desk.complete(ticket, Outcome::Noted), None);
        assert!(matches!(answer.try_recv(), Ok(Reply::Done)));
        assert_eq!(desk.complete(ticket, Outcome::Noted), None, "it is answered once");
    }
}
