//! Sessions are opened, moved and ended, and what they ask is done where they are.

use super::super::{Answer, Change, Command, Object, Question, Session, Who, sessions};
use super::world::*;
use crate::coordination::keys;
use quorate_kernel::limits::TREE_SESSIONS_MAX;
use quorate_kernel::tree::{Failure, Refollow, SessionId, Told, TreeReply, What, Zxid};
use std::vec::Vec;

fn opened(session: u64, attached: u64, zxid: u64) -> Answer {
    let (session, zxid) = (SessionId(session), Zxid(zxid));
    Answer::Open { session, timeout_ms: 4000, attached, zxid }
}

fn told(zxid: u64, told: Result<Told, Failure>) -> Answer {
    Answer::Told(TreeReply { zxid: Zxid(zxid), told })
}

fn open(at: u64) -> Command {
    Command::Open { gateway: gateway(at), timeout_ms: 4000 }
}

fn attach(at: u64, session: u64) -> Command {
    Command::Attach { gateway: gateway(at), session: SessionId(session) }
}

fn expire(session: u64, attached: u64) -> Command {
    Command::Expire { session: SessionId(session), attached }
}

fn who(at: u64, session: u64) -> Who {
    Who { gateway: gateway(at), session: Some(SessionId(session)), ..anybody() }
}

fn change(session: u64, at: u64, is_moved: bool) -> Change {
    Change::Session { session: SessionId(session), gateway: gateway(at), is_moved }
}

#[test]
fn a_session_has_a_name_that_is_never_given_again() {
    let mut world = World::new();
    assert_eq!(world.run(open(1)), opened(1, 1, 1));
    assert_eq!(world.run(open(2)), opened(2, 1, 2));
    assert_eq!(world.run(expire(2, 1)), Answer::Expired);
    assert_eq!(world.run(open(2)), opened(4, 1, 4));
    let list = sessions(world.member.machine.objects());
    let list = list.map(|(id, session)| (id.0, *session)).collect::<Vec<_>>();
    let session = |at| Session { gateway: gateway(at), attached: 1, timeout_ms: 4000 };
    assert_eq!(list, [(1, session(1)), (4, session(2))]);
}

#[test]
fn a_session_moves_and_its_earlier_gateway_is_told() {
    let mut world = World::new();
    world.run(open(1));
    world.one(&who(1, 1), ephemeral("/e")).unwrap();
    world.news();
    assert_eq!(world.run(attach(1, 1)), opened(1, 2, 3));
    assert_eq!(world.news(), [], "it has not moved");
    assert_eq!(world.run(attach(2, 1)), opened(1, 3, 4));
    assert_eq!(world.news(), [change(1, 1, true)]);
    assert!(world.is_there("/e"));

    for command in [
        Command::One(who(1, 1), create("/a", "")),
        Command::All(who(1, 1), [create("/a", "")].into()),
        Command::Put(who(1, 1), "/a".into(), data("")),
        Command::Close(who(1, 1)),
    ] {
        assert_eq!(world.run(command), told(4, Err(Failure::SessionMoved)));
    }
    for question in questions(&who(1, 1)) {
        assert_eq!(world.ask(&question), told(4, Err(Failure::SessionMoved)));
    }
    assert!(world.one(&who(2, 1), create("/a", "")).is_ok());
    assert_eq!(world.run(attach(2, 9)), Answer::Expired);
    assert_eq!(world.zxid(), 5);
}

#[test]
fn a_gateway_that_has_restarted_is_another_one() {
    let mut world = World::new();
    world.run(open(1));
    let mut later = who(1, 1);
    later.gateway.start.0 += 1;
    assert_eq!(world.one(&later, create("/a", "")), Err(Failure::SessionMoved));
    let command = Command::Attach { gateway: later.gateway, session: SessionId(1) };
    assert_eq!(world.run(command), opened(1, 2, 2));
    assert_eq!(world.news(), [change(1, 1, true)]);
    assert!(world.one(&later, create("/a", "")).is_ok());
}

#[test]
fn a_session_that_was_attached_since_does_not_end() {
    let mut world = World::new();
    world.run(open(1));
    world.one(&who(1, 1), ephemeral("/e")).unwrap();
    world.run(attach(1, 1));
    world.news();
    assert_eq!(world.run(expire(1, 1)), told(3, Ok(Told::Done)));
    assert_eq!(world.run(expire(1, 9)), told(3, Ok(Told::Done)));
    assert!(world.is_there("/e"));
    assert_eq!(world.run(expire(1, 2)), Answer::Expired);
    assert_eq!(world.news(), [node(4, "/e", What::Deleted), change(1, 1, false)]);
    assert_eq!(world.run(expire(1, 2)), Answer::Expired, "it has ended before");
    assert_eq!((world.zxid(), world.news()), (4, [].into()));
}

fn questions(who: &Who) -> [Question; 5] {
    [
        Question::One(who.clone(), exists("/")),
        Question::Each(who.clone(), [exists("/")].into()),
        Question::All(who.clone(), [checked("/", None)].into()),
        Question::Refollow(who.clone(), Refollow::default()),
        Question::Sync(who.clone()),
    ]
}

#[test]
fn nothing_is_done_for_a_session_that_has_ended() {
    let mut world = World::new();
    world.run(open(1));
    world.one(&who(1, 1), ephemeral("/e")).unwrap();
    for question in questions(&who(1, 1)) {
        let Answer::Told(reply) = world.ask(&question) else { continue };
        assert!(reply.told.is_ok(), "{question:?}");
    }
    assert_eq!(world.run(Command::Close(who(1, 1))), told(3, Ok(Told::Done)));
    for command in [
        Command::One(who(1, 1), create("/a", "")),
        Command::One(who(1, 1), ephemeral("/a")),
        Command::All(who(1, 1), [create("/a", "")].into()),
        Command::Put(who(1, 1), "/a".into(), data("")),
        Command::Close(who(1, 1)),
    ] {
        assert_eq!(world.run(command), told(3, Err(Failure::SessionExpired)));
    }
    for question in questions(&who(1, 1)) {
        assert_eq!(world.ask(&question), told(3, Err(Failure::SessionExpired)));
    }
    assert_eq!(world.run(attach(1, 1)), Answer::Expired);
    assert_eq!(world.run(Command::Close(anybody())), told(3, Err(Failure::BadArguments)));
    assert!(!world.is_there("/e") && !world.is_there("/a"));
}

#[test]
fn there_are_so_many_sessions_and_no_more() {
    let mut world = World::new();
    world.run(open(1));
    let count = |world: &mut World, sessions| {
        world.replace(keys::META, |object| {
            let Object::Meta(meta) = object else { panic!("it is what is known of all") };
            meta.sessions = sessions;
        });
    };
    count(&mut world, TREE_SESSIONS_MAX);
    let from = crate::smr::tests::member::from(gateway(6), 1);
    let answers = world.member.ask(1, from, &[open(1)]);
    assert_eq!(answers, [told(1, Err(Failure::Quota))]);
    count(&mut world, 1);
    assert_eq!(world.run(open(1)), opened(2, 1, 2));
}
