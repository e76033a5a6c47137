//! Replicas that execute the same entries are the same, whatever happens to one of them between.

use super::super::{Answer, Command, Tree, check};
use super::random::Source;
use crate::smr::tests::member::{Member, client};
use crate::smr::{Entry, Origin, Part};
use bytes::Bytes;
use quorate_kernel::rng::Rng;
use std::vec::Vec;

/// A log in which gateways ask, and ask again: what they have no answer to, in later entries, and
/// as later starts with nothing of the earlier one's.
struct Writer {
    source: Source,
    rng: Rng,
    at_ms: u64,
    clients: Vec<Asking>,
}

/// A client of the log.
struct Asking {
    start: u32,
    /// What it has asked since its start.
    asked: Vec<Command>,
    acked: u64,
}

impl Writer {
    fn new(seed: u64) -> Writer {
        let clients = (0..2).map(|_| Asking { start: 1, asked: Vec::new(), acked: 0 }).collect();
        let source =
            if seed.is_multiple_of(2) { Source::new(seed) } else { Source::with_quotas(seed) };
        Writer { source, rng: Rng::new(seed), at_ms: 0, clients }
    }

    fn entry(&mut self) -> Bytes {
        self.at_ms += self.rng.below(20);
        let parts = (0..=self.rng.below(2)).map(|_| self.part()).collect();
        Entry::<Tree> { at_ms: self.at_ms - self.rng.below(5).min(self.at_ms), parts }.bytes()
    }

    fn part(&mut self) -> Part<Tree> {
        let node = self.rng.below(self.clients.len() as u64 + 1);
        let Some(asking) = self.clients.get_mut(node as usize) else {
            let commands = Vec::from([self.source.command()]);
            return Part { from: None, commands };
        };
        if self.rng.below(40) == 0 {
            *asking = Asking { start: asking.start + 1, asked: Vec::new(), acked: 0 };
        }
        // Some of what it has no answer to comes again, with new commands behind it or without.
        let again = self.rng.below(4).min(asking.asked.len() as u64 - asking.acked);
        let first = asking.asked.len() - again as usize;
        let new = if again > 0 { self.rng.below(2) } else { 1 + self.rng.below(3) };
        asking.asked.extend((0..new).map(|_| self.source.command()));
        let from = Origin {
            client: client(node, asking.start),
            first: first as u64 + 1,
            acked: asking.acked,
        };
        if self.rng.below(3) == 0 {
            asking.acked = first as u64;
        }
        Part { from: Some(from), commands: asking.asked[first..].to_vec() }
    }

    /// A member executes the next entry, and it is kept.
    fn goes_on(&mut self, member: &mut Member<Tree>, log: &mut Vec<Bytes>) {
        let entry = self.entry();
        member.execute(&entry);
        self.source.hears(member);
        check(member.machine.objects());
        log.push(entry);
    }
}

#[test]
fn a_replica_that_stores_and_restarts_is_as_one_that_does_not() {
    for seed in 0..30 {
        let (mut writer, mut rng, mut log) = (Writer::new(seed), Rng::new(seed), Vec::new());
        let (mut member, mut other) = (Member::<Tree>::new(), Member::<Tree>::new());
        for _ in 0..60 {
            writer.goes_on(&mut member, &mut log);
            match rng.below(5) {
                0 => other.store(),
                1 => other.restart(),
                _ => {}
            }
            log[other.op.0 as usize..].iter().for_each(|entry| other.execute(entry));
            other.is_as(&member);
        }
    }
}

#[test]
fn a_copy_that_is_made_while_commands_go_on_is_of_its_begin() {
    for seed in 0..20 {
        let (mut writer, mut log) = (Writer::new(seed), Vec::new());
        let mut source = Member::<Tree>::new();
        (0..40).for_each(|_| writer.goes_on(&mut source, &mut log));
        let mut twin = Member::<Tree>::new();
        log.iter().for_each(|entry| twin.execute(entry));
        let mut copied = Member::<Tree>::new();
        log[..10].iter().for_each(|entry| copied.execute(entry));
        copied.copy(&mut source, |source| writer.goes_on(source, &mut log));
        copied.is_as(&twin);
        check(copied.machine.objects());
        copied.restart();
        copied.is_as(&twin);
        log[copied.op.0 as usize..].iter().for_each(|entry| copied.execute(entry));
        copied.is_as(&source);
        assert!(source.op > twin.op, "it went on meanwhile");
    }
}

#[test]
fn what_comes_again_is_answered_the_same_and_done_once() {
    for seed in 0..20 {
        let mut writer = Writer::new(seed);
        let (mut member, mut log) = (Member::<Tree>::new(), Vec::new());
        for _ in 0..40 {
            writer.goes_on(&mut member, &mut log);
            let entry = Entry::<Tree>::of(&log[log.len() - 1]).expect("it was executed");
            let parts = entry.parts.into_iter().filter(|part| part.from.is_some()).collect();
            let again = Entry::<Tree> { at_ms: 0, parts };
            let objects = member.machine.objects().clone();
            let last = member.changes().last();
            let answers = answers_to(&member, &again);
            member.execute(&again.bytes());
            log.push(again.bytes());
            assert_eq!(member.machine.objects(), &objects, "seed {seed}");
            assert_eq!(member.changes().last(), last, "seed {seed}");
            assert_eq!(answers_to(&member, &again), answers, "seed {seed}");
        }
    }
}

/// What the clients of an entry are answered; nothing where a later start is known.
fn answers_to(member: &Member<Tree>, entry: &Entry<Tree>) -> Vec<Option<(u64, Answer)>> {
    let mut answers = Vec::new();
    for Part { from, commands } in &entry.parts {
        let Some(from) = from else { continue };
        for number in (from.first..).take(commands.len()) {
            let known = member.machine.client(from.client);
            answers.push(known.and_then(|known| known.reply(number).cloned()));
        }
    }
    answers
}
