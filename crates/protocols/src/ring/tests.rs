//! Pointers, stabilization and lookups.

use super::pointers::{Place, Pointers};
use super::stabilize::{ASKED_MAX, NeighboursReply, NeighboursRequest, Stabilizer};
use super::unification::{Unification, closest_before};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::SUCCESSORS_MAX;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Time;
use std::vec::Vec;

fn place(token: u64) -> Place {
    Place { token, node: NodeId(token) }
}

fn tokens(pointers: &Pointers) -> Vec<u64> {
    pointers.successors().iter().map(|place| place.token).collect()
}

#[test]
fn nearer_tokens_are_taken_and_the_ring_wraps() {
    let mut pointers = Pointers::new(50);
    assert!(pointers.consider(place(40)));
    assert!(pointers.consider(place(70)) && pointers.consider(place(60)));
    assert!(!pointers.consider(place(50)) && !pointers.consider(place(60)));
    assert_eq!(
        (tokens(&pointers), pointers.predecessor()),
        (Vec::from([60, 70, 40]), Some(place(40)))
    );
    (100..200).for_each(|token| {
        pointers.consider(place(token));
    });
    assert_eq!(tokens(&pointers), [60, 70, 100, 101, 102, 103, 104, 105]);
    let lower = Place { token: 60, node: NodeId(1) };
    assert!(pointers.consider(lower) && !pointers.consider(place(60)), "the lower node id has it");
    assert!(pointers.drop_dead(|place| place.token > 60));
    assert_eq!((tokens(&pointers)[0], pointers.predecessor()), (70, None));
    pointers.check();
}

#[test]
fn a_list_is_replaced_as_a_whole_and_never_by_nothing() {
    let mut pointers = Pointers::new(50);
    pointers.consider(place(60));
    pointers.adopt(core::iter::empty());
    assert_eq!(tokens(&pointers), [60]);
    pointers.adopt([70, 80, 10, 50, 60, 70].map(place).into_iter());
    assert_eq!(tokens(&pointers), [70, 80, 10], "it ends where it goes round");
    pointers.adopt([80, 70].map(place).into_iter());
    assert_eq!(tokens(&pointers), [80], "what is out of order is not taken");
    pointers.check();
}

fn ask(own: u64, of: u64) -> NeighboursRequest {
    NeighboursRequest { own, of }
}

#[test]
fn asking_notifies_and_only_the_living_are_taken() {
    let mut node = Stabilizer::new(NodeId(50));
    node.set_tokens(&[50]);
    let answers = node.on_asks(NodeId(40), &[ask(40, 50), ask(40, 77)], |_| true);
    assert_eq!(answers.len(), 1, "of a token that it does not have it says nothing");
    assert_eq!((answers[0].predecessor, node.pointers()[0].predecessor()), (None, Some(place(40))));
    node.on_asks(NodeId(45), &[ask(45, 50)], |_| false);
    assert_eq!(node.pointers()[0].predecessor(), Some(place(40)), "it is not alive");
    node.consider(place(60));
    let predecessor = Some(place(55));
    let successors = [70, 80].map(place).to_vec();
    let answer = NeighboursReply { ask: ask(50, 60), predecessor, successors };
    node.on_answers(NodeId(60), core::slice::from_ref(&answer), |place| place.token != 55);
    assert_eq!(tokens(&node.pointers()[0]), [60, 70, 80]);
    node.on_answers(NodeId(60), core::slice::from_ref(&answer), |_| true);
    assert_eq!(tokens(&node.pointers()[0]), [55, 60, 70, 80]);
    node.on_answers(NodeId(60), core::slice::from_ref(&answer), |_| true);
    assert_eq!(tokens(&node.pointers()[0]), [55, 60, 70, 80], "only the first successor counts");
}

#[test]
fn questions_to_one_node_go_together_and_everybody_gets_a_turn() {
    let mut node = Stabilizer::new(NodeId(1));
    node.set_tokens(&[100, 200]);
    node.consider(Place { token: 300, node: NodeId(9) });
    let asks = node.asks();
    assert_eq!(asks, [(NodeId(9), Vec::from([ask(100, 300), ask(200, 300)]))]);
    let own: Vec<u64> = (0..30).map(|token| token * 1000).collect();
    node.set_tokens(&own);
    own.iter().for_each(|token| {
        node.consider(place(token + 500));
    });
    let mut asked: Vec<NodeId> = Vec::new();
    for _ in 0..4 {
        let turn = node.asks();
        assert!(turn.len() <= ASKED_MAX);
        asked.extend(turn.iter().map(|(node, _)| *node));
    }
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), 30);
    node.set_tokens(&[100]);
    assert_eq!(node.pointers().len(), 1);
    node.check();
}

/// Nodes that each know one other form the ring by stabilizing alone.
#[test]
fn stabilizing_alone_makes_a_ring() {
    let mut rng = Rng::new(7);
    let mut own: Vec<u64> = (0..40).map(|_| rng.next()).collect();
    own.sort_unstable();
    let mut nodes: Vec<Stabilizer> = Vec::new();
    for (index, token) in own.iter().enumerate() {
        let mut node = Stabilizer::new(NodeId(*token));
        node.set_tokens(&[*token]);
        node.consider(place(own[(index + 7) % 40]));
        node.consider(place(own[0]));
        nodes.push(node);
    }
    let index = |node: NodeId| own.binary_search(&node.0).expect("a node");
    for _ in 0..100 {
        for asker in 0..40 {
            for (to, asks) in nodes[asker].asks() {
                let answers = nodes[index(to)].on_asks(NodeId(own[asker]), &asks, |_| true);
                nodes[asker].on_answers(to, &answers, |_| true);
            }
        }
    }
    for (index, node) in nodes.iter().enumerate() {
        let expected: Vec<u64> =
            (1..=SUCCESSORS_MAX).map(|step| own[(index + step) % 40]).collect();
        assert_eq!(tokens(&node.pointers()[0]), expected);
        assert_eq!(node.pointers()[0].predecessor(), Some(place(own[(index + 39) % 40])));
    }
}

#[test]
fn only_the_asked_in_the_known_incarnation_begins_a_merge() {
    let who = |start| Incarnation { node: NodeId(3), start: Start(start) };
    let mut unification = Unification::default();
    assert!(!unification.on_answer(who(1)));
    unification.ask(who(1), Time(0));
    assert!(!unification.on_answer(Incarnation { node: NodeId(4), start: Start(1) }));
    assert!(!unification.on_answer(who(2)), "it restarted: that is no other ring");
    unification.ask(who(1), Time(0));
    assert!(unification.on_answer(who(1)) && !unification.on_answer(who(1)), "once");
    assert_eq!(unification.begun(), 1);
}

#[test]
fn a_lookup_comes_closer_and_arrives() {
    let all = [10, 20, 30, 40].map(place);
    let next = |token, own| closest_before(token, own, all.into_iter()).map(|place| place.token);
    assert_eq!(next(35, 10), Some(30));
    assert_eq!(next(35, 30), None, "it has arrived");
    assert_eq!(next(5, 40), None);
    assert_eq!(next(15, 20), Some(10), "it goes round");
}
