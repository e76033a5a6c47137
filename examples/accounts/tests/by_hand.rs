//! Two partitions of one replica each, driven by hand: what a host has to do.

use quorate_accounts::{AccountId, Accounts, Command, Output};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_protocols::multicast::{Decision, RingId};
use quorate_protocols::smr::partitioned::{
    Addressed, Answered, CommandId, Effect, Layout, Machine, PartitionId, Placement, Replica,
    ReplicaId, Snapshot, may_order,
};
use quorate_protocols::vsr::Op;

const COUNT: u8 = 2;

/// A command of the only client.
fn addressed(number: u64, command: Command) -> Addressed<Accounts> {
    let client = Incarnation { node: NodeId(9), start: Start(1) };
    let placement = Placement::even(COUNT);
    let (version, destinations) =
        (placement.version(), Accounts::destinations(&command, &placement));
    let id = CommandId { client, number };
    Addressed { id, acked: number - 1, version, destinations, command }
}

/// What a replica tells clients; what it sends goes to the other one.
fn exchange(replicas: &mut [Replica<Accounts>]) -> Vec<Output> {
    let mut outputs = Vec::new();
    while let Some((at, effects)) = (0..replicas.len())
        .map(|at| (at, replicas[at].take_effects()))
        .find(|(_, effects)| !effects.is_empty())
    {
        for effect in effects {
            match effect {
                Effect::Send(_, message) | Effect::Tell(_, message) => {
                    replicas[1 - at].on_message(message);
                }
                Effect::Answer(_, Answered::Done(output)) => outputs.push(output),
                Effect::Answer(_, Answered::Retry(version)) => panic!("{version} is not here"),
                Effect::Answer(_, Answered::Outside(of)) => panic!("{of:?} was left out"),
                // This cluster never restarts.
                Effect::Keep(_) => {}
                Effect::Halt(differs) => panic!("a machine that is deterministic: {differs:?}"),
                Effect::Lost(place) => panic!("nothing is forgotten here, also not of {place:?}"),
            }
        }
    }
    outputs
}

#[test]
fn a_transfer_between_two_partitions() {
    let members = (0..COUNT).map(|of| [NodeId(u64::from(of))].into()).collect();
    let layout = Layout::new(members);
    let mut replicas: Vec<Replica<Accounts>> = (0..COUNT)
        .map(|of| {
            let incarnation = Incarnation { node: NodeId(u64::from(of)), start: Start(1) };
            let id = ReplicaId { partition: PartitionId(of), incarnation };
            let snapshot = Snapshot::begin(id.partition, COUNT);
            let mut replica = Replica::resume(id, layout.clone(), snapshot, []);
            replica.designate(true);
            replica
        })
        .collect();

    // Account 4 is of partition 0, and account 7 of partition 1.
    let (four, seven) = (AccountId(4), AccountId(7));
    let deposit = addressed(1, Command::Deposit { account: four, amount: 10 });
    let transfer = addressed(2, Command::Transfer { from: four, to: seven, amount: 3 });
    assert_eq!(deposit.destinations.ring(), Some(PartitionId(0).ring()));
    assert_eq!(transfer.destinations.ring(), Some(RingId::ALL));
    let logs = [
        (PartitionId(0).ring(), Decision::Commands(vec![deposit.into()])),
        (PartitionId(1).ring(), Decision::Skip(1)),
        (RingId::ALL, Decision::Commands(vec![transfer.into()])),
    ];
    for (ring, decision) in logs {
        if let Decision::Commands(batch) = &decision {
            assert!(may_order(ring, batch, COUNT));
        }
        for (of, replica) in (0..COUNT).map(PartitionId).zip(&mut replicas) {
            let learns = ring == of.ring() || ring == RingId::ALL;
            assert_eq!(replica.learn(ring, Op(1), decision.clone()), learns);
        }
    }
    let transferred = Output::Transferred { from: 7, to: 3 };
    // Both partitions answer the transfer, and the client takes what it hears first.
    let outputs = exchange(&mut replicas);
    assert_eq!(outputs.iter().filter(|it| **it == transferred).count(), 2);
    assert_eq!(outputs.iter().filter(|it| **it == Output::Deposited(10)).count(), 1);
    assert_eq!(replicas[0].objects()[&four.balance()], 7);
    assert_eq!(replicas[1].objects()[&seven.balance()], 3);
}
