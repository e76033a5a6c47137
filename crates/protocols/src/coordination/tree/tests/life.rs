//! The tree goes on with what is left of it.

use super::super::{Answer, Command, LIFE_MAX, Tree, Who, may_change_members};
use super::world::*;
use crate::smr::Machine;
use quorate_kernel::tree::{Failure, SessionId, Told, TreeReply, Zxid};

fn open(world: &mut World) -> (SessionId, Zxid) {
    match world.run(Command::Open { gateway: gateway(1), timeout_ms: 4000 }) {
        Answer::Open { session, zxid, .. } => (session, zxid),
        other => panic!("{other:?} opens nothing"),
    }
}

fn begin(world: &mut World, life: u64) -> Zxid {
    match world.run(Command::Begin { life }) {
        Answer::Told(TreeReply { zxid, told: Ok(Told::Done) }) => zxid,
        other => panic!("{other:?} begins nothing"),
    }
}

fn who(session: SessionId) -> Who {
    Who { session: Some(session), ..anybody() }
}

#[test]
fn changes_of_a_later_life_are_later_than_all_that_may_be_lost() {
    let mut world = World::new();
    let (first, zxid) = open(&mut world);
    assert_eq!((first.0, zxid.0), (1, 1));
    let began = begin(&mut world, 2);
    assert_eq!(began.0, 2 << 44);
    assert_eq!(begin(&mut world, 2), began, "it begins once");
    assert_eq!(begin(&mut world, 1), began, "and none before it");
    let (second, zxid) = open(&mut world);
    assert_eq!((second.0, zxid.0), (began.0 + 1, began.0 + 1));
    let far = begin(&mut world, LIFE_MAX);
    assert!(i64::try_from(far.0).is_ok(), "clients read it with a sign");
    assert!(begin(&mut world, LIFE_MAX) == far && open(&mut world).1.0 == far.0 + 1);
}

#[test]
fn members_are_not_changed_when_few_lives_are_left_and_no_life_is_one_too_many() {
    assert!(may_change_members(0) && may_change_members(LIFE_MAX - 1025));
    assert!(!may_change_members(LIFE_MAX - 1024) && !may_change_members(u64::MAX));
    let is_sound = |life| Tree::is_sound(&Command::Begin { life });
    assert!(is_sound(LIFE_MAX) && !is_sound(LIFE_MAX + 1) && !is_sound(u64::MAX));
}

#[test]
fn sessions_of_earlier_lives_are_over() {
    let mut world = World::new();
    let [one, two] = [(), ()].map(|()| open(&mut world).0);
    for session in [one, two] {
        world.one(&who(session), ephemeral(&std::format!("/{}", session.0))).unwrap();
    }
    begin(&mut world, 1);
    let asked = world.one(&who(one), create("/late", ""));
    assert_eq!(asked, Err(Failure::SessionExpired));
    let attach = |session| Command::Attach { gateway: gateway(2), session };
    assert_eq!(world.run(attach(one)), Answer::Expired);
    assert_eq!(world.run(Command::Expire { session: two, attached: 1 }), Answer::Expired);
    let (new, _) = open(&mut world);
    assert!(matches!(world.run(attach(new)), Answer::Open { .. }));
    for path in ["/1", "/2", "/late"] {
        assert_eq!(world.one(&anybody(), delete(path, None)), Err(Failure::NoNode));
    }
}
