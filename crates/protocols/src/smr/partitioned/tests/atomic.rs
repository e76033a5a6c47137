//! Execution atomicity: what clients see is linearizable, whichever partition is slow.

use super::cluster::{A, B, C, Cluster};
use super::letters::{Letters, Step, read, write};
use crate::multicast::RingId;
use crate::smr::partitioned::{Answered, CommandId};
use std::collections::BTreeMap;
use std::vec::Vec;

/// A command as its client saw it. Times are counted by the test.
struct Seen {
    steps: Vec<Step>,
    invoked: usize,
    /// When it was answered, and what; none if it was not.
    returned: Option<(usize, Answered<Letters>)>,
}

/// Whether there is one order of all commands that explains their answers, in which none comes
/// before one that was answered before it was asked: all orders are tried.
fn is_linearizable(seen: &[Seen]) -> bool {
    fn try_next(seen: &[Seen], left: &mut Vec<usize>, state: &BTreeMap<Bytes, u64>) -> bool {
        if left.is_empty() {
            return true;
        }
        (0..left.len()).any(|at| {
            let next = left.remove(at);
            let asked = seen[next].invoked;
            let ended = |it: &usize| seen[*it].returned.as_ref().is_some_and(|it| it.0 < asked);
            let (after, output) = run(&seen[next].steps, state);
            let returned = seen[next].returned.as_ref();
            let fits = returned.is_none_or(|(_, it)| *it == Answered::Done(output));
            let may = fits && !left.iter().any(ended) && try_next(seen, left, &after);
            left.insert(at, next);
            may
        })
    }
    try_next(seen, &mut (0..seen.len()).collect(), &BTreeMap::new())
}

type Bytes = std::string::String;

/// What a command does where nothing is partitioned.
fn run(steps: &[Step], state: &BTreeMap<Bytes, u64>) -> (BTreeMap<Bytes, u64>, Vec<u64>) {
    let (mut after, mut output) = (state.clone(), Vec::new());
    for step in steps {
        match step {
            Step::Read(name) => output.push(after.get(name).copied().unwrap_or_default()),
            Step::Write(name, number) => _ = after.insert(name.clone(), *number),
            _ => unreachable!("these histories read and write"),
        }
    }
    (after, output)
}

/// Clients of a cluster, and what they see.
struct History {
    cluster: Cluster,
    seen: Vec<(CommandId, Seen)>,
    now: usize,
}

impl History {
    fn new(partitions: u8) -> History {
        History { cluster: Cluster::new(partitions, 1), seen: Vec::new(), now: 0 }
    }

    fn ask(&mut self, steps: &[Step]) -> CommandId {
        self.now += 1;
        let id = self.cluster.ask(steps);
        let seen = Seen { steps: steps.to_vec(), invoked: self.now, returned: None };
        self.seen.push((id, seen));
        id
    }

    /// All that can happen does.
    fn settle(&mut self) {
        self.cluster.settle();
        self.now += 1;
        for (id, seen) in &mut self.seen {
            if seen.returned.is_none() {
                // The first answer is what the client hears.
                let first = self.cluster.answers.iter().find(|(_, of, _)| of == id);
                seen.returned = first.map(|(_, _, answer)| (self.now, answer.clone()));
            }
        }
    }

    fn is_answered(&self, id: CommandId) -> bool {
        self.cluster.answers.iter().any(|(_, of, _)| *of == id)
    }

    fn judge(self) {
        let seen: Vec<Seen> = self.seen.into_iter().map(|(_, seen)| seen).collect();
        assert!(is_linearizable(&seen), "no order of all commands explains what clients saw");
    }
}

#[test]
fn a_read_that_follows_another_does_not_find_what_is_older() {
    // The paper's Figure 1, with the partition of y slow.
    let mut history = History::new(2);
    let both = history.ask(&[write("a", 20), write("b", 20)]);
    history.cluster.skip(A.ring(), 1);
    let first = history.ask(&[read("a")]);
    history.cluster.skip(RingId::ALL, 1);
    history.settle();
    let is_early = history.is_answered(both);
    let second = history.ask(&[read("b")]);
    history.cluster.level();
    history.settle();
    assert!([both, first, second].iter().all(|id| history.is_answered(*id)));
    history.judge();
    assert!(!is_early, "it is answered, and one of its partitions has not come to it");
}

#[test]
fn a_command_is_signalled_at_the_head_and_not_when_it_is_learned() {
    // Z orders Cz, Cyz; Y orders Cyz, Cxy; X orders Cxy, Cx. X, Y, Z are a, b, c.
    let mut history = History::new(3);
    let cyz = history.ask(&[write("b", 1), write("c", 1)]);
    let cxy = history.ask(&[write("a", 1), write("b", 2)]);
    history.cluster.skip(A.ring(), 2);
    let cx = history.ask(&[read("a")]);
    history.cluster.skip(B.ring(), 3);
    history.cluster.skip(RingId::ALL, 3);
    history.settle();
    // C has decided nothing, so Y waits for it in Cyz. It has learned Cxy, which X waits in.
    let is_early = history.is_answered(cx);
    let cz = history.ask(&[read("c")]);
    history.cluster.skip(C.ring(), 3);
    history.settle();
    let by = history.ask(&[read("b")]);
    history.cluster.level();
    history.settle();
    assert!([cyz, cxy, cx, cz, by].iter().all(|id| history.is_answered(*id)));
    history.judge();
    assert!(!is_early, "a command of X is answered, and one before it waits");
}

#[test]
fn the_judge_of_these_tests_sees_what_signals_prevent() {
    let answered = |at, output: &[u64]| Some((at, Answered::Done(output.to_vec())));
    let seen =
        |steps: &[Step], invoked, returned| Seen { steps: steps.to_vec(), invoked, returned };
    let both = || seen(&[write("a", 20), write("b", 20)], 1, None);
    let first = || seen(&[read("a")], 1, answered(2, &[20]));
    assert!(is_linearizable(&[both(), first(), seen(&[read("b")], 3, answered(4, &[20]))]));
    assert!(!is_linearizable(&[both(), first(), seen(&[read("b")], 3, answered(4, &[0]))]));
    assert!(is_linearizable(&[both(), first(), seen(&[read("b")], 1, answered(4, &[0]))]));
}
