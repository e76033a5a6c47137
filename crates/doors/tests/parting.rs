//! A connection that is refused while a command that takes turns is under way.

mod common;

use common::World;
use quorate_doors::{Session as _, Shortage};
use quorate_kernel::limits::CLIENT_OPERATIONS_MAX;
use quorate_kernel::operation::Operation;

#[test]
fn who_is_refused_is_answered_what_was_begun_and_then_let_go() {
    let count = CLIENT_OPERATIONS_MAX + 100;
    let sets: String = (0..count).map(|at| format!(" k{at} v")).collect();
    for line in [format!("MSET{sets}"), "KEYS *".into(), "DBSIZE".into()] {
        let mut world = World::default();
        for at in 0..count * 20 {
            let put = Operation::put(format!("n{at}").into(), "v".into());
            world.map.apply(quorate_kernel::ids::LaneId(1), put);
        }
        world.receive(format!("{line}\r\nPING\r\n").as_bytes());
        world.session.refuse(&Shortage::Memory { door: "resp", bytes: 1, taken: 9, limit: 9 });
        let said = String::from_utf8(world.settle()).expect("text");
        assert!(world.session.is_closing(), "{line:.6}: something is under way for ever");
        let (last, first) = ("-OVERLOADED ", &said[..said.len().min(9)]);
        assert!(!first.starts_with('-') && said.contains(last), "{line:.6}: {first}");
        assert_eq!((said.matches(last).count(), world.session.held_bytes()), (1, 0), "{line:.6}");
    }
}
