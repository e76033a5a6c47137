//! What should be left of siblings at rest: nothing but values and their dots.

use crate::host::{Host, count};
use crate::workload::Ground;
use quorate_check::siblings::{History, Remains};
use quorate_kernel::ids::LaneId;
use quorate_kernel::storage::{Class, Durability, Reader, store_key};
use quorate_protocols::dots::object::Object;

/// What a replica keeps that is of no use any more. Where only copies were lost, a client may have
/// brought a context of what nobody has: a replica keeps it, and its clock the actors that it
/// names, since it cannot know that.
pub(super) fn unclean(ground: &Ground<'_>, has_lost: bool) -> Option<String> {
    let mut hosts = ground.hosts.iter().enumerate();
    hosts.find_map(|(index, host)| {
        let remains = remains(host, ground.lane, has_lost);
        (remains != Remains::default()).then(|| format!("n{} has {remains:?}", index + 1))
    })
}

/// Notes what is left, for the judge. What is in memory alone need not be cleared on disk; an
/// object with a context that stays need not be cleared either.
pub(super) fn note(
    ground: &Ground<'_>,
    has_tombstones: bool,
    has_lost: bool,
    history: &mut History,
) {
    let is_memory = ground.durability == Durability::Memory;
    for host in ground.hosts {
        let is_counted = !is_memory && !has_tombstones && !has_lost;
        let empty = if is_counted { empty_objects(host, ground.lane) } else { 0 };
        history.remains(Remains { empty, ..remains(host, ground.lane, has_lost) });
    }
}

/// What a host shows of a lane that should not be there at rest.
fn remains(host: &Host, lane: LaneId, has_lost: bool) -> Remains {
    let shown =
        |names: &[&'static str]| names.iter().map(|name| count(host, lane, name)).sum::<u64>();
    let kept = |name| if has_lost { 0 } else { count(host, lane, name) };
    Remains {
        // The baseline shows how many of its trees are not known to be equal. A clock has two
        // entries of a partition at most: of who holds it, and of all that held it before.
        moving: shown(&["joining", "leaving", "unequal"]) + kept("spare_entries"),
        dots: count(host, lane, "dot_keys"),
        contexts: kept("unstripped"),
        empty: 0,
    }
}

/// The stored objects of a lane at a host that have no value.
fn empty_objects(host: &Host, lane: LaneId) -> u64 {
    let (from, to) = (store_key(lane, Class::Data, &[]), [0, 0, 0, lane.0 as u8, 2]);
    let mut empty = 0;
    let result = host.disk.store().scan(&from, &to, &mut |key, value| {
        // After lane, class and birth stands the kind.
        if key.get(9) == Some(&b'o') {
            let object = Object::from_bytes(value).expect("what was stored is an object");
            empty += u64::from(object.versions.is_empty());
        }
        true
    });
    result.expect("the simulated store reads");
    empty
}
