//! The rules of one attempt, one by one.

use super::super::tests::{ballot, incarnation, replace, view};
use super::*;
use quorate_kernel::ids::Start;

fn begin(members: &[u64], want: Change) -> (Rounds, Proposer) {
    let mut rounds = Rounds::new(incarnation(1));
    let begun = Proposer::begin(&mut rounds, view(3, members), want);
    let (proposer, message) = begun.expect("the change fits");
    assert_eq!(message, Message::P1A { view: proposer.id(), ballot: ballot(1, 1) });
    (rounds, proposer)
}

fn promise(proposer: &Proposer, accepted: Option<(Ballot, Change)>) -> Promise {
    let (view, ballot) = (proposer.id(), proposer.ballot);
    Promise { view, ballot, ok: true, installed: view, promised: ballot, accepted }
}

fn accepted(proposer: &Proposer) -> Accepted {
    let (view, ballot) = (proposer.id(), proposer.ballot);
    Accepted { view, ballot, ok: true, installed: view, promised: ballot }
}

fn newer(proposer: &Proposer) -> ViewId {
    ViewId { version: 4, ..proposer.id() }
}

#[test]
fn a_calm_run_goes_through_three_phases() {
    let want = replace(3, 4);
    let (mut rounds, mut proposer) = begin(&[1, 2, 3], want);
    let (view, ballot) = (proposer.id(), proposer.ballot);
    let (yes, from) = (promise(&proposer, None), incarnation);
    assert_eq!(proposer.on_promise(from(1), &yes), Step::Nothing);
    let question = Message::P2A { view, ballot, change: want };
    assert_eq!(proposer.on_promise(from(2), &yes), Step::Send(question));
    assert_eq!(proposer.on_promise(from(3), &yes), Step::Nothing, "the phase is over");
    assert_eq!(proposer.retry(&mut rounds), question);
    let yes = accepted(&proposer);
    assert_eq!(proposer.on_accepted(from(3), &yes), Step::Nothing);
    assert_eq!(proposer.decided(), None);
    assert_eq!(proposer.on_accepted(from(1), &yes), Step::Decided(want));
    assert_eq!(proposer.retry(&mut rounds), Message::P3A { view, change: want });
    let newer = newer(&proposer);
    assert_eq!(proposer.on_installed(from(2), view, view), Step::Nothing, "not installed");
    assert_eq!(proposer.on_installed(from(2), view, newer), Step::Nothing);
    assert_eq!(proposer.on_installed(from(1), view, newer), Step::Installed);
    assert_eq!(proposer.on_installed(from(3), view, newer), Step::Nothing);
    assert_eq!((proposer.decided(), proposer.want()), (Some(&want), &want));
}

#[test]
fn a_change_that_does_not_fit_is_not_proposed() {
    let mut rounds = Rounds::new(incarnation(1));
    assert!(Proposer::begin(&mut rounds, view(3, &[1, 2, 3]), replace(4, 5)).is_none());
    assert_eq!(rounds.next(0).round, 1, "no round was used up");
}

#[test]
fn the_change_accepted_under_the_highest_ballot_is_adopted() {
    let (_, mut proposer) = begin(&[1, 2, 3, 4, 5], replace(3, 6));
    let old = [(1, replace(2, 7)), (2, replace(1, 8))];
    for (node, accepted) in [(1, Some(old[1])), (2, Some(old[0]))] {
        let accepted =
            accepted.map(|(node, change)| (Ballot { round: 1, ..ballot(0, node) }, change));
        let reply = promise(&proposer, accepted);
        assert_eq!(proposer.on_promise(incarnation(node), &reply), Step::Nothing);
    }
    let reply = promise(&proposer, None);
    let step = proposer.on_promise(incarnation(3), &reply);
    let (view, ballot) = (proposer.id(), proposer.ballot);
    assert_eq!(step, Step::Send(Message::P2A { view, ballot, change: old[1].1 }));
}

#[test]
fn a_refusal_leads_to_a_higher_round_and_old_replies_are_void() {
    let (mut rounds, mut proposer) = begin(&[1, 2, 3], replace(3, 4));
    let old = promise(&proposer, None);
    assert_eq!(proposer.on_promise(incarnation(1), &old), Step::Nothing);
    let refusal = |round| Promise { ok: false, promised: ballot(round, 2), ..old };
    let step = proposer.on_promise(incarnation(2), &refusal(6));
    assert_eq!(step, Step::Refused { round: 6 });
    assert_eq!(proposer.on_promise(incarnation(3), &refusal(9)), Step::Nothing);
    let view = proposer.id();
    assert_eq!(proposer.retry(&mut rounds), Message::P1A { view, ballot: ballot(10, 1) });
    for node in [1, 2, 3] {
        assert_eq!(proposer.on_promise(incarnation(node), &old), Step::Nothing);
        assert_eq!(proposer.on_promise(incarnation(node), &refusal(9)), Step::Nothing);
    }
    let repeated = Message::P1A { view, ballot: ballot(10, 1) };
    assert_eq!(proposer.retry(&mut rounds), repeated, "nobody refused this one");
    let yes = promise(&proposer, None);
    let step = proposer.on_promise(incarnation(3), &yes);
    assert_eq!(step, Step::Nothing, "the first ballot's promise does not count for this one");
    assert!(matches!(proposer.on_promise(incarnation(1), &yes), Step::Send(_)));
}

#[test]
fn what_was_accepted_under_another_ballot_or_in_another_view_does_not_count() {
    let (mut rounds, mut proposer) = begin(&[1, 2, 3], replace(3, 4));
    let yes = promise(&proposer, None);
    let elsewhere = Promise { installed: newer(&proposer), ..yes };
    for node in [1, 2, 3] {
        assert_eq!(proposer.on_promise(incarnation(node), &elsewhere), Step::Nothing);
    }
    proposer.on_promise(incarnation(1), &yes);
    proposer.on_promise(incarnation(2), &yes);
    let old = accepted(&proposer);
    let no = Accepted { ok: false, promised: ballot(2, 2), ..old };
    assert_eq!(proposer.on_accepted(incarnation(2), &no), Step::Refused { round: 2 });
    proposer.retry(&mut rounds);
    assert_eq!(proposer.on_accepted(incarnation(1), &old), Step::Nothing, "phase 1 again");
    let found = promise(&proposer, Some((ballot(2, 2), replace(1, 5))));
    proposer.on_promise(incarnation(2), &found);
    assert!(matches!(proposer.on_promise(incarnation(3), &found), Step::Send(_)));
    let yes = accepted(&proposer);
    let elsewhere = Accepted { installed: newer(&proposer), ..yes };
    assert_eq!(proposer.on_accepted(incarnation(2), &yes), Step::Nothing);
    for reply in [old, elsewhere] {
        assert_eq!(proposer.on_accepted(incarnation(1), &reply), Step::Nothing);
    }
    let step = proposer.on_accepted(incarnation(3), &yes);
    assert_eq!(step, Step::Decided(replace(1, 5)));
}

#[test]
fn a_minority_that_refuses_stops_nothing() {
    let want = replace(3, 4);
    let (mut rounds, mut proposer) = begin(&[1, 2, 3], want);
    let yes = promise(&proposer, None);
    let no = Promise { ok: false, promised: ballot(6, 2), ..yes };
    assert_eq!(proposer.on_promise(incarnation(2), &no), Step::Refused { round: 6 });
    proposer.on_promise(incarnation(1), &yes);
    assert!(matches!(proposer.on_promise(incarnation(3), &yes), Step::Send(_)));
    let yes = accepted(&proposer);
    proposer.on_accepted(incarnation(1), &yes);
    assert_eq!(proposer.on_accepted(incarnation(3), &yes), Step::Decided(want));
    let decision = Message::P3A { view: proposer.id(), change: want };
    assert_eq!(proposer.retry(&mut rounds), decision, "and not a new round");
}

#[test]
fn who_has_left_the_view_outpaces_the_proposer() {
    let (_, mut proposer) = begin(&[1, 2, 3], replace(3, 4));
    let installed = newer(&proposer);
    let no = Promise { ok: false, installed, ..promise(&proposer, None) };
    assert_eq!(proposer.on_promise(incarnation(2), &no), Step::Outpaced { installed });
    let view = proposer.id();
    let step = proposer.on_installed(incarnation(2), view, installed);
    assert_eq!(step, Step::Outpaced { installed });
    let behind = ViewId { version: 2, ..view };
    let no = Promise { installed: behind, promised: Ballot::default(), ..no };
    assert_eq!(proposer.on_promise(incarnation(2), &no), Step::Nothing, "it is behind");
}

#[test]
fn one_member_is_one_voice_whatever_its_start() {
    let (_, mut proposer) = begin(&[1, 2, 3], replace(3, 4));
    let yes = promise(&proposer, None);
    for start in 1..4 {
        let from = Incarnation { start: Start(start), ..incarnation(2) };
        assert_eq!(proposer.on_promise(from, &yes), Step::Nothing);
    }
}

#[test]
fn a_promise_with_a_change_that_does_not_fit_is_ignored() {
    let (_, mut proposer) = begin(&[1, 2, 3], replace(3, 4));
    let bad = promise(&proposer, Some((Ballot { round: 1, ..ballot(0, 1) }, replace(8, 9))));
    let good = promise(&proposer, None);
    assert_eq!(proposer.on_promise(incarnation(1), &bad), Step::Nothing);
    assert_eq!(proposer.on_promise(incarnation(2), &good), Step::Nothing);
    assert!(matches!(proposer.on_promise(incarnation(3), &good), Step::Send(_)));
}
