//! What is stored is of one entry, and the rest is executed again.

use super::member::{Member, client, entry, from};
use super::numbers::{Command, Numbers, add, key, remove};
use crate::smr::Origin;
use bytes::Bytes;
use quorate_kernel::rng::Rng;
use std::format;
use std::vec::Vec;

fn log(seed: u64) -> Vec<Bytes> {
    let mut rng = Rng::new(seed);
    let (mut next, mut log) = (1, Vec::new());
    for at_ms in 0..60 {
        let mut commands = Vec::new();
        for _ in 0..=rng.below(3) {
            let name = format!("{}", rng.below(6));
            commands.push(match rng.below(4) {
                0 => remove(&name),
                1 => Command::Time(name),
                2 => Command::Waver(name),
                _ => add(&name, 1),
            });
        }
        let first = next - rng.below(3).min(next - 1);
        let from = Origin { acked: first / 2, ..from(client(1, 1), first) };
        next = next.max(first + commands.len() as u64);
        log.push(entry::<Numbers>(at_ms, from, &commands));
    }
    log
}

#[test]
fn who_restarts_has_what_it_has_stored_and_goes_on() {
    for seed in 0..40 {
        let (log, mut rng) = (log(seed), Rng::new(seed));
        let (mut member, mut twin) = (Member::<Numbers>::new(), Member::<Numbers>::new());
        let mut kept = member.disk.kept();
        for (at, entry) in log.iter().enumerate() {
            member.execute(entry);
            twin.execute(entry);
            match rng.below(6) {
                0 => member.store(),
                1 => member.restart(),
                2 => kept = member.disk.kept(),
                3 => member.fall_back(&kept),
                _ => {}
            }
            log[member.op.0 as usize..=at].iter().for_each(|entry| member.execute(entry));
            member.is_as(&twin);
        }
    }
}

#[test]
fn what_differs_from_the_disk_is_counted() {
    let mut member = Member::<Numbers>::new();
    member.store();
    member.ask(1, from(client(1, 1), 1), &[add("ab", 1), Command::Waver("c".into())]);
    let unstored = crate::vsr::Machine::unstored(&member.machine);
    assert_eq!(unstored, "ab".len() + 8);
    member.store();
    member.restart();
    assert_eq!(member.machine.objects().get(&key("ab")), Some(&1));
    let keys = member.machine.from(b"b").map(|(key, _)| key.clone());
    assert_eq!(keys.collect::<Vec<_>>(), [key("first")]);
}

#[test]
#[should_panic(expected = "damaged, or of another version")]
fn who_cannot_read_an_entry_does_not_go_on_without_it() {
    let mut member = Member::<Numbers>::new();
    let entry = Bytes::from_static(&[1, 255]);
    member.call(|machine, store| {
        crate::vsr::Machine::apply(machine, crate::vsr::Op(1), &entry, store);
    });
}
