//! One test for each mistake that the paper's pages invite, with several parts at work.

use super::super::{Acceptor, Message, Proposer, Rounds, Step};
use super::{incarnation, replace, view};
use quorate_kernel::view::{Change, View, ViewId};
use std::sync::Arc;

/// A proposer of this node, with its source of ballots.
fn propose(node: u64, view: &Arc<View>, want: Change) -> (Rounds, Proposer, Message) {
    let mut rounds = Rounds::new(incarnation(node));
    let (proposer, message) =
        Proposer::begin(&mut rounds, Arc::clone(view), want).expect("the change fits");
    (rounds, proposer, message)
}

/// Lets a node answer a question of phase 1 or 2, and the proposer take the answer.
fn ask(
    question: Message,
    proposer: &mut Proposer,
    node: u64,
    installed: &View,
    acceptor: &mut Acceptor,
) -> Step {
    let from = incarnation(node);
    match question {
        Message::P1A { view, ballot } => {
            proposer.on_promise(from, &acceptor.on_prepare(installed, view, ballot).0)
        }
        Message::P2A { view, ballot, change } => {
            proposer.on_accepted(from, &acceptor.on_accept(installed, view, ballot, change).0)
        }
        other => panic!("{other:?} is no question of phase 1 or 2"),
    }
}

fn sent(step: Step) -> Message {
    let Step::Send(message) = step else { panic!("{step:?} where a phase should end") };
    message
}

/// T2: the group went from {A,B,C} to {A,B,D}, and C holds the new view too. With it, C and D would
/// be a majority that does not meet A and B.
#[test]
fn a_removed_member_does_not_count() {
    let view = view(4, &[1, 2, 4]);
    let mut acceptors = [Acceptor::default(); 5];
    let (_, mut one, question) = propose(1, &view, replace(4, 3));
    let mut last = Step::Nothing;
    for node in [4, 3] {
        last = ask(question, &mut one, node, &view, &mut acceptors[node as usize]);
    }
    assert_eq!(last, Step::Nothing, "the removed member's promise counted");
    let question = sent(ask(question, &mut one, 1, &view, &mut acceptors[1]));
    for node in [4, 3] {
        last = ask(question, &mut one, node, &view, &mut acceptors[node as usize]);
    }
    assert_eq!(last, Step::Nothing, "the removed member's acceptance counted");
    let last = ask(question, &mut one, 1, &view, &mut acceptors[1]);
    assert_eq!(last, Step::Decided(replace(4, 3)));
}

/// T3: phase 3 asks whether the old view was left. The removed member says so too; the newcomer was
/// never in it.
#[test]
fn the_old_view_s_members_end_phase_three() {
    let view = view(3, &[1, 2, 3]);
    let mut acceptors = [Acceptor::default(); 4];
    let (_, mut proposer, mut question) = propose(1, &view, replace(3, 4));
    for _ in 0..2 {
        ask(question, &mut proposer, 1, &view, &mut acceptors[1]);
        let step = ask(question, &mut proposer, 2, &view, &mut acceptors[2]);
        question = if let Step::Send(next) = step { next } else { break };
    }
    assert_eq!(proposer.decided(), Some(&replace(3, 4)));
    let next = ViewId { version: 4, ..view.id };
    let later = ViewId { version: 6, ..view.id };
    assert_eq!(proposer.on_installed(incarnation(4), view.id, next), Step::Nothing);
    assert_eq!(proposer.on_installed(incarnation(2), next, later), Step::Nothing, "another view's");
    assert_eq!(proposer.on_installed(incarnation(2), view.id, later), Step::Nothing);
    assert_eq!(proposer.on_installed(incarnation(3), view.id, next), Step::Installed);
}

/// After a split the members report a view of a part, whose group has another name.
#[test]
fn a_part_of_a_split_counts_as_installed() {
    let view = view(3, &[1, 2, 3]);
    let split = Change::Split { at: 50 };
    let parts = view.after(&split).expect("the change fits");
    let mut acceptors = [Acceptor::default(); 3];
    let (_, mut proposer, question) = propose(1, &view, split);
    ask(question, &mut proposer, 1, &view, &mut acceptors[1]);
    let question = sent(ask(question, &mut proposer, 2, &view, &mut acceptors[2]));
    ask(question, &mut proposer, 1, &view, &mut acceptors[1]);
    let step = ask(question, &mut proposer, 2, &view, &mut acceptors[2]);
    assert_eq!(step, Step::Decided(split));
    assert_eq!(proposer.on_installed(incarnation(1), view.id, parts[0].id), Step::Nothing);
    assert_eq!(proposer.on_installed(incarnation(2), view.id, parts[1].id), Step::Installed);
    let (_, mut late, question) = propose(3, &view, replace(1, 5));
    let step = ask(question, &mut late, 1, &parts[1], &mut acceptors[1]);
    assert_eq!(step, Step::Outpaced { installed: parts[1].id });
}

/// A proposer dies when a majority has accepted its change, of which the next one meets a single
/// member. It must complete what it finds.
#[test]
fn what_may_be_decided_already_is_decided_again() {
    let view = view(3, &[1, 2, 3]);
    let mut acceptors = [Acceptor::default(); 4];
    let (_, mut one, question) = propose(1, &view, replace(3, 4));
    ask(question, &mut one, 1, &view, &mut acceptors[1]);
    let question = sent(ask(question, &mut one, 2, &view, &mut acceptors[2]));
    ask(question, &mut one, 1, &view, &mut acceptors[1]);
    let step = ask(question, &mut one, 2, &view, &mut acceptors[2]);
    assert_eq!(step, Step::Decided(replace(3, 4)));
    let (_, mut two, question) = propose(3, &view, replace(1, 5));
    ask(question, &mut two, 3, &view, &mut acceptors[3]);
    let question = sent(ask(question, &mut two, 2, &view, &mut acceptors[2]));
    ask(question, &mut two, 3, &view, &mut acceptors[3]);
    let step = ask(question, &mut two, 2, &view, &mut acceptors[2]);
    assert_eq!(step, Step::Decided(replace(3, 4)));
    assert_eq!(*two.want(), replace(1, 5), "the caller compares");
}

/// Two proposers pass phase 1 one after the other: the first must not get anything accepted by who
/// has promised the second.
#[test]
fn an_overtaken_proposer_decides_nothing() {
    let view = view(3, &[1, 2, 3]);
    let mut acceptors = [Acceptor::default(); 4];
    let (mut rounds, mut one, question) = propose(1, &view, replace(3, 4));
    ask(question, &mut one, 1, &view, &mut acceptors[1]);
    let first = sent(ask(question, &mut one, 2, &view, &mut acceptors[2]));
    let (_, mut two, question) = propose(2, &view, replace(1, 5));
    ask(question, &mut two, 2, &view, &mut acceptors[2]);
    let second = sent(ask(question, &mut two, 3, &view, &mut acceptors[3]));
    ask(first, &mut one, 1, &view, &mut acceptors[1]);
    let step = ask(first, &mut one, 2, &view, &mut acceptors[2]);
    assert_eq!(step, Step::Refused { round: 1 });
    ask(second, &mut two, 2, &view, &mut acceptors[2]);
    let step = ask(second, &mut two, 3, &view, &mut acceptors[3]);
    assert_eq!(step, Step::Decided(replace(1, 5)));
    let again = one.retry(&mut rounds);
    ask(again, &mut one, 1, &view, &mut acceptors[1]);
    let third = sent(ask(again, &mut one, 2, &view, &mut acceptors[2]));
    assert!(matches!(third, Message::P2A { change, .. } if change == replace(1, 5)));
}
