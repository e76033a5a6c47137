//! What operators ask, on the core thread: what it knows is answered at once, and an answer that a
//! lane must find takes the way of a client's request.

use super::requests::{OperatorCall, OperatorReply, OperatorRequest};
use super::show;
use crate::cluster::links::Links;
use crate::keyspaces::{Served, Table};
use crate::pending::{PendingRequests, Sort, Waiter};
use crate::ring::{KeyspaceReport, Report, meant};
use quorate_kernel::engine::Capability;
use quorate_kernel::ids::{LaneId, NodeId, Ticket};
use quorate_kernel::keyspace::{KeyspaceOrder, Keyspaces};
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::ring::{Closing, Ring};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Time;
use quorate_node::node::Node;
use quorate_node::pump::Input;
use quorate_protocols::catalog::partitions::moves;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use tokio::sync::oneshot;

/// The most requests of operators that wait for a lane at once.
const IN_HAND_MAX: usize = 1024;

/// The core thread's side: answers, or hands to a lane.
pub(crate) struct Operators {
    receiver: Receiver<OperatorCall>,
    /// What this host believes of the ring.
    ring: Arc<Ring>,
    /// Whether the overlay was told that nothing is in hand for clients any more.
    has_told_idle: bool,
    /// The hosts that have numbers.
    numbers: Vec<(NodeId, u32)>,
}

/// What a request is answered from.
pub(crate) struct Sight<'a> {
    pub node: &'a Node,
    pub table: &'a Table,
    pub links: &'a mut Links,
    pub pending: &'a mut PendingRequests,
}

impl Operators {
    /// Nobody has asked yet.
    pub fn new(
        receiver: Receiver<OperatorCall>,
        ring: Ring,
        numbers: Vec<(NodeId, u32)>,
    ) -> Operators {
        Operators { receiver, ring: Arc::new(ring), has_told_idle: false, numbers }
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

    /// Answers the requests that have arrived, or hands them to a lane.
    pub fn take(&mut self, now: Time, sight: &mut Sight<'_>) {
        while let Ok(OperatorCall { request, deadline, reply }) = self.receiver.try_recv() {
            let found = match self.consider(request, sight) {
                Ok(_) if sight.pending.count(Sort::Operator) >= IN_HAND_MAX => {
                    Err(OperatorReply::Refused(Refusal::Overloaded))
                }
                found => found,
            };
            match found {
                Ok((lane, control)) => {
                    let usual = sight.pending.deadline(now);
                    let asked = deadline.map(|at| sight.pending.time(at));
                    let deadline = asked.map_or(usual, |asked| asked.min(usual));
                    sight.pending.control(lane, control, deadline, Waiter::Operator(reply));
                }
                // Whoever asked may have gone.
                Err(known) => drop(reply.send(known)),
            }
        }
    }

    /// The lane that a request is for, or its answer if the core thread knows it.
    fn consider(
        &mut self,
        request: OperatorRequest,
        sight: &mut Sight<'_>,
    ) -> Result<(LaneId, Control), OperatorReply> {
        match request {
            OperatorRequest::Ring => Err(OperatorReply::Ring(Box::new(self.report(sight)))),
            OperatorRequest::Explain { keyspace, key } => {
                Ok((lane_that_explains(sight.table, &keyspace)?, Control::Explain { key }))
            }
            OperatorRequest::Examine { keyspace, from, leaver } => {
                let lane = match keyspace {
                    Some(name) => served_as(sight.table, &name)?.keyspace().lane,
                    None => LaneId::CATALOG,
                };
                Ok((lane, Control::Examine { from, leaver }))
            }
            OperatorRequest::Drain { host, undo } => {
                let node = self.node_of(&host)?;
                match stuck(&sight.table.records, &self.ring, node) {
                    Some(why) if !undo => Err(OperatorReply::Refused(Refusal::Membership { why })),
                    _ => {
                        let replicas = replicas_max(&sight.table.records);
                        Ok((LaneId::OVERLAY, Control::Drain { node, undo, replicas }))
                    }
                }
            }
            OperatorRequest::Remove { host, force } => {
                Ok((LaneId::OVERLAY, Control::Remove { node: self.node_of(&host)?, force }))
            }
            OperatorRequest::Keyspaces => {
                Err(OperatorReply::Keyspaces(Arc::clone(&sight.table.records)))
            }
            OperatorRequest::Keyspace(order) => Ok((LaneId::CATALOG, Control::Keyspace(order))),
            OperatorRequest::Replace { keyspace: name, partition, host } => {
                let to = self.node_of(&host)?;
                let order = KeyspaceOrder::Replace { name, partition, to };
                Ok((LaneId::CATALOG, Control::Keyspace(order)))
            }
            OperatorRequest::Shutdown { force } => match lost(sight.table) {
                Some(why) if !force => Err(OperatorReply::Refused(Refusal::Membership { why })),
                _ => Ok((LaneId::OVERLAY, Control::Shutdown)),
            },
            OperatorRequest::Faults(table) => {
                sight.links.faults().set(table);
                Err(OperatorReply::Done)
            }
        }
    }

    fn report(&self, sight: &Sight<'_>) -> Report {
        let keyspaces = sight.table.served.iter().map(|served| KeyspaceReport {
            entry: served.entry.clone(),
            groups: show::rows(sight.node, served.keyspace().lane, "groups"),
        });
        Report {
            me: sight.node.me().node,
            ring: Arc::clone(&self.ring),
            roll: sight.node.roll().cloned(),
            numbers: self.numbers.clone(),
            keyspaces: keyspaces.collect(),
        }
    }

    /// Hosts are called by these numbers from now on.
    pub fn set_numbers(&mut self, numbers: Vec<(NodeId, u32)>) {
        self.numbers = numbers;
    }

    /// The node that an operator means.
    fn node_of(&self, host: &str) -> Result<NodeId, OperatorReply> {
        let meant = meant(&self.ring, &self.numbers, host);
        meant.map(|host| host.who.node).map_err(OperatorReply::Unknown)
    }
}

/// Tells an operator what a lane has answered. Whoever asked may have gone.
pub(crate) fn tell(reply: oneshot::Sender<OperatorReply>, outcome: Outcome) {
    drop(reply.send(match outcome {
        Outcome::Explained(explanation) => OperatorReply::Explained(explanation),
        Outcome::Examined(examination) => OperatorReply::Examined(examination),
        Outcome::Refused(refusal) => OperatorReply::Refused(refusal),
        Outcome::Closed { silent } => OperatorReply::Closed(silent),
        _ => OperatorReply::Done,
    }));
}

/// What of a node nobody could take if it left.
fn stuck(records: &Keyspaces, ring: &Ring, node: NodeId) -> Option<String> {
    records.list.iter().find_map(|(keyspace, _)| {
        let partition = moves::stuck(keyspace, ring, node)?;
        let name = &keyspace.name;
        Some(format!(
            "every other host has keys of partition {partition} of keyspace `{name}` already; add \
             a host first"
        ))
    })
}

/// The most replicas that any keyspace has, as they are now.
fn replicas_max(records: &Keyspaces) -> usize {
    records.list.iter().map(|(keyspace, _)| keyspace.replicas()).max().unwrap_or(1)
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

fn served_as<'a>(table: &'a Table, name: &str) -> Result<&'a Served, OperatorReply> {
    let found = table.served.iter().find(|served| served.keyspace().name == name);
    found.map(|served| &**served).ok_or_else(|| {
        OperatorReply::Unknown(format!(
            "no keyspace {name}; there are {}",
            table.names().join(", ")
        ))
    })
}

/// The lane of a keyspace whose engine tells how it serves reads.
fn lane_that_explains(table: &Table, name: &str) -> Result<LaneId, OperatorReply> {
    let served = served_as(table, name)?;
    let lacking = served.entry.require(Capability::Explaining, "an explanation", None);
    lacking.map_err(|why| OperatorReply::Refused(Refusal::Lacking(Box::new(why))))?;
    Ok(served.keyspace().lane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::queues::{CallsInbox, calls};
    use crate::samples;
    use quorate_kernel::ids::{Incarnation, Start};
    use quorate_kernel::ring::{RingHost, Standing};

    fn operators() -> Operators {
        let host = RingHost {
            who: Incarnation { node: NodeId(0xa1), start: Start(1) },
            address: String::from("127.0.0.1:7411"),
            zone: String::new(),
            tokens: vec![1],
            standing: Standing::Up,
            is_suspected: false,
            doors: Vec::new(),
        };
        let (_, CallsInbox { operators, .. }) = calls();
        Operators::new(operators, Ring::new(1, vec![host]), vec![(NodeId(0xa1), 7)])
    }

    #[test]
    fn a_host_is_meant_by_its_node_its_address_or_its_number() {
        let operators = operators();
        for name in ["00000000000000a1", "127.0.0.1:7411", "7"] {
            assert!(matches!(operators.node_of(name), Ok(NodeId(0xa1))), "{name}");
        }
        for name in ["8", "07", "+7", "0000000000000007"] {
            let Err(OperatorReply::Unknown(why)) = operators.node_of(name) else {
                panic!("{name} is nobody's")
            };
            let text = format!("no host {name}; the ring has 00000000000000a1 at");
            assert!(why.contains(&text), "{why}");
        }
    }

    #[test]
    fn of_two_hosts_at_one_address_the_one_that_is_there_is_meant() {
        for (gone, there) in [(1, 2), (2, 1)] {
            let mut operators = operators();
            let at = |node, standing| RingHost {
                who: Incarnation { node: NodeId(node), start: Start(1) },
                tokens: vec![node],
                standing,
                ..operators.ring.hosts()[0].clone()
            };
            let hosts = vec![at(gone, Standing::Left), at(there, Standing::Up)];
            operators.ring = Arc::new(Ring::new(1, hosts));
            let meant = operators.node_of("127.0.0.1:7411");
            assert!(matches!(meant, Ok(node) if node == NodeId(there)), "{meant:?}");
        }
    }

    #[test]
    fn the_most_replicas_are_those_of_keyspaces_as_they_are_now() {
        let keyspace = |name: &str, replicas: &str, lane| {
            let served =
                samples::served(name, "linearizable", &[("replicas", replicas)], LaneId(lane));
            (Arc::clone(&served.entry.keyspace), Start(1))
        };
        let mut records = Keyspaces::default();
        assert_eq!(replicas_max(&records), 1);
        records.list = vec![keyspace("a", "3", 16), keyspace("b", "5", 17)];
        assert_eq!(replicas_max(&records), 5);
        records.list[1] = keyspace("b", "1", 17);
        assert_eq!(replicas_max(&records), 3);
    }

    #[test]
    fn an_explanation_is_refused_where_the_engine_gives_none() {
        let all = [("plain", "linearizable", LaneId(16)), ("carts", "causal", LaneId(17))];
        let served = all.map(|(name, engine, lane)| samples::served(name, engine, &[], lane));
        let served = served.into_iter().map(Arc::new).collect();
        let table = Table { served, ..Table::default() };
        assert!(matches!(lane_that_explains(&table, "plain"), Ok(LaneId(16))));
        let refused = lane_that_explains(&table, "carts");
        let Err(OperatorReply::Refused(why)) = refused else { panic!("the engine cannot") };
        let text = "an explanation needs an engine with explanations; this keyspace is causal: \
                    use a keyspace of the engine linearizable";
        assert_eq!(why.to_string(), text);
        assert!(matches!(lane_that_explains(&table, "none"), Err(OperatorReply::Unknown(_))));
    }
}
