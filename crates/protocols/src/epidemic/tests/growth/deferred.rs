//! Writes to a range that is being taken over.

use crate::epidemic::keys::wire_key;
use crate::epidemic::message::{Message, SnapshotB};
use crate::epidemic::ordered::batch::{Act, BatchItem};
use crate::epidemic::replica::range::position;
use crate::epidemic::replica::store::Record;
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epidemic::tests::copies::asked;
use crate::epidemic::tests::joining::{asker, event, number, page};
use crate::epto::LogicalTime;
use bytes::Bytes;
use std::format;

/// More is written than may wait while all of a range is sent.
#[test]
fn a_join_ends_though_much_is_written_all_the_time() {
    let (mut world, node, _) = asker(90);
    let range = world.state(node).range().expect("it has a slice");
    let last = world.state(node).last.expect("it has come far");
    let keys = (0..).map(|number| wire_key(format!("o{number}").as_bytes()));
    let mut keys = keys.filter(|key| range.has(position(key)));
    let value = Bytes::from(std::vec![1; 60 * 1024]);
    for key in keys.by_ref().take(120) {
        let (version, id) = (Version::Ordered(event(2)), RequestId(9));
        for other in world.up() {
            let record = Record { key: key.clone(), version, id, value: Some(value.clone()) };
            world.with_host(other, |engine, cx| {
                if engine.state.ready.is_some_and(|ready| ready.covers(&range)) {
                    engine.state.store.put(record, &mut engine.state.writes);
                    engine.flush(cx);
                }
            });
        }
    }
    world.cut = None;
    let value = Bytes::from(std::vec![2; 512 * 1024]);
    for round in 0..600_u32 {
        for number in 0..2 {
            let (id, act) = (RequestId(u128::from(2 * round + number)), Act::Put(value.clone()));
            let asked = BatchItem { id, key: keys.next().expect("no end"), act, since: None };
            world.with_host(node, |engine, _| engine.defer(last, asked));
        }
        world.run(1);
        if world.state(node).is_whole() {
            assert!(round > 16, "more was written than may wait");
            return;
        }
    }
    panic!("it begins anew again and again");
}

/// It was done by those that still knew that it had not been done before.
#[test]
fn what_waits_and_may_be_forgotten_by_then_is_in_doubt() {
    let (mut world, node, donors) = asker(91);
    asked(&mut world, node, &donors);
    let last = world.state(node).last.expect("it has come far");
    let mine = (0..1000).map(|number| wire_key(format!("o{number}").as_bytes()));
    let mut mine = mine.filter(|key| world.state(node).is_mine(position(key)));
    let (key, other) = mine.next().zip(mine.next()).expect("it has a slice");
    let (id, act, since) = (RequestId(7), Act::Put(Bytes::new()), Some(LogicalTime(0)));
    let again = BatchItem { id, key: key.clone(), act, since };
    world.with_host(node, |engine, _| engine.defer(last, again));
    for donor in donors {
        let usual = page(&world, node, number(&world, node, donor), 1, true);
        let forgotten = Some(event(1));
        world.say(donor, node, Message::SnapshotB(SnapshotB { forgotten, ..usual }));
    }
    world.run(2);
    assert!(world.state(node).is_whole());
    assert!(world.state(node).store.held(&key, None).is_none(), "it may have been done before");
    assert!(world.state(node).is_degraded(&key) && !world.state(node).is_degraded(&other));
    world.cut = None;
    world.run(60);
    assert!(!world.state(node).is_degraded(&key), "others were compared with");
}
