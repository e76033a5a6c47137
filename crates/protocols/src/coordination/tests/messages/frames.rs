//! Frames: the bytes of each message are pinned, what is written is read back, and anything else is
//! refused, or another message that stops nobody.

use crate::coordination::gateway::stream::ASK_MAX;
use crate::coordination::message::{GatewayAsks, GatewayNews, Message, News, OpenQuestion};
use crate::coordination::tests::world::{SOON, hosts};
use crate::coordination::tree::tests::world::{create, delete, get, set};
use crate::coordination::tree::{Answer, Change, Command, LIFE_MAX, Question, Who};
use crate::groups::{Leads, PARTS_MAX, Stands};
use crate::vsr::{self, Entry, Epoch, Op, ViewNumber};
use bytes::{Bytes, BytesMut};
use core::fmt::Write;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start};
use quorate_kernel::process::Process;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{
    self as words, Acl, Failure, Id, Refollow, SessionId, TreeReply, What, Zxid,
};
use quorate_kernel::wire::{Body, Decoder, Encoder, Wire};
use std::format;
use std::string::String;
use std::vec::Vec;

const VIEW: ViewNumber = ViewNumber { epoch: Epoch(1), view: 3 };
/// The gateway of all commands.
const GATEWAY: Incarnation = Incarnation { node: NodeId(4), start: Start(1) };

/// A body whose pieces are any bytes, as a peer gone wrong could send them.
struct Pieces(Vec<u8>, Vec<u8>);

impl Wire for Pieces {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.raw(&self.0);
        out.tail(0, &Bytes::copy_from_slice(&self.1));
    }

    fn decode(input: &Decoder) -> Result<Pieces, WireError> {
        Ok(Pieces(input.head_bytes().to_vec(), input.tail(0).to_vec()))
    }
}

fn body<M: Wire>(message: &M) -> Body {
    Body::encode(message, &mut BytesMut::new()).expect("it fits")
}

fn read(head: &[u8], tail: &[u8]) -> Result<Message, WireError> {
    body(&Pieces(head.to_vec(), tail.to_vec())).decode()
}

fn who() -> Who {
    let ids = Vec::from([Id { scheme: "digest".into(), id: "a:b".into() }]);
    let peer = Some([10, 0, 0, 1].into());
    Who { gateway: GATEWAY, session: Some(SessionId(5)), ids, peer }
}

/// One command of each kind.
fn commands() -> Vec<Command> {
    let data = Bytes::from_static(b"d");
    Vec::from([
        Command::One(who(), create("/a", "x")),
        Command::All(who(), [set("/a", "y", Some(1)), delete("/b", None)].into()),
        Command::Put(who(), "/c/d".into(), data),
        Command::Open { gateway: GATEWAY, timeout_ms: 6000 },
        Command::Attach { gateway: GATEWAY, session: SessionId(5) },
        Command::Expire { session: SessionId(5), attached: 2 },
        Command::Close(who()),
        Command::Reap { path: "/e".into(), seen: Zxid(9) },
        Command::Begin { life: 3 },
        Command::Ask(Question::One(who(), get("/f"))),
    ])
}

fn questions() -> Vec<OpenQuestion> {
    let paths = |path: &str| Vec::from([path.into()]);
    let refollow = Refollow {
        seen: Zxid(3),
        data: paths("/a"),
        absent: paths("/b"),
        children: paths("/c"),
        persistent: paths("/d"),
        recursive: paths("/"),
    };
    let all = [
        Question::One(who(), get("/a")),
        Question::Each(who(), [get("/a"), get("/b")].into()),
        Question::All(who(), Vec::new()),
        Question::Refollow(who(), refollow),
        Question::Sync(who()),
        Question::List("/a".into(), 100),
    ];
    let open = |(number, question)| OpenQuestion { number, after: 2, question };
    (11..).zip(all).map(open).collect()
}

/// All that may be told, each kind of it.
fn news() -> Vec<News> {
    let reply = |told| Answer::Told(TreeReply { zxid: Zxid(7), told });
    let (session, zxid) = (SessionId(5), Zxid(7));
    let (what, acl) = (What::Data, Acl::open().into());
    let open = Answer::Open { session, timeout_ms: 6000, attached: 2, zxid };
    let changed = Answer::Changed { zxid, changed: [("/a".into(), What::Children)].into() };
    let paths = Answer::Paths { paths: ["/a".into()].into(), next: Some("/b".into()) };
    Vec::from([
        News::Change(1, Change::Node { zxid, path: "/a".into(), what: What::Created }),
        News::Change(2, Change::Session { session, gateway: GATEWAY, is_moved: true }),
        News::Change(3, Change::Guarded { zxid, path: "/b".into(), what, acl }),
        News::Done(1, reply(Ok(words::Told::Done))),
        News::Done(2, reply(Err(Failure::NoNode))),
        News::Done(3, open),
        News::Done(4, Answer::Expired),
        News::Done(5, Answer::Lost),
        News::Answer(11, changed),
        News::Answer(12, paths),
    ])
}

/// One of each message. Without a wildcard, so that a new variant must be added here.
fn messages() -> Vec<Message> {
    let tag = |message: &Message| match message {
        Message::Log(_)
        | Message::Leads(_)
        | Message::WhoLeads { .. }
        | Message::Ask(_)
        | Message::Told(_)
        | Message::Stand { .. }
        | Message::Stands { .. }
        | Message::Applied { .. } => (),
    };
    let (group, members) = (GroupId(1), [1, 2, 3].map(NodeId).into());
    let entry = Entry::command(VIEW, Bytes::from_static(b"one"));
    let prepare = vsr::Message::Prepare {
        view: VIEW,
        from: Op(4),
        entries: Vec::from([entry]),
        commit: Op(2),
    };
    let (epoch, leaver) = (Epoch(4), Some(NodeId(3)));
    let stands = Stands {
        epoch,
        members: [1, 2, 3].map(NodeId).into(),
        is_whole: true,
        owes: false,
        brings: true,
    };
    let (touch, turn, life) = (8, 2, 1);
    let ask = GatewayAsks {
        touch,
        turn,
        life: Some(life),
        seen: 40,
        follows: true,
        acked: 6,
        first: 7,
        commands: commands(),
        questions: questions(),
    };
    let told = GatewayNews {
        touch,
        view: VIEW,
        turn,
        number: 3,
        life,
        done: 5,
        has_ended: false,
        upto: 44,
        lacks: true,
        news: news(),
    };
    let all = Vec::from([
        Message::Log([(group, prepare)].into()),
        Message::Leads(Leads { group, members, view: VIEW, serves: true }),
        Message::WhoLeads { group },
        Message::Ask(ask),
        Message::Told(told),
        Message::Stand { question: 77, leaver },
        Message::Stands { question: 77, stands },
        Message::Applied { life, touch, upto: Op(90) },
    ]);
    all.iter().for_each(tag);
    all
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("there is room");
        text
    })
}

#[test]
fn what_is_written_is_read_back_and_its_bytes_stay() {
    let mut lines = String::new();
    for message in messages() {
        assert_eq!(body(&message).decode::<Message>().expect("it is one"), message);
        let Pieces(head, tail) = body(&message).decode().expect("it has pieces");
        writeln!(lines, "{} {} {}", message.name(), hex(&head), hex(&tail)).expect("room");
    }
    let path = format!("{}/src/coordination/tests/messages/frames.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_SCRIPTS").is_some() {
        std::fs::write(&path, &lines).expect("a writable file");
    }
    let expected = std::fs::read_to_string(&path).expect("the bytes are there");
    assert_eq!(lines, expected, "the bytes of a message have changed");
}

#[test]
fn what_is_cut_short_or_longer_is_refused() {
    for message in messages() {
        let Pieces(head, tail) = body(&message).decode().expect("it has pieces");
        for end in 0..head.len() {
            assert!(read(&head[..end], &tail).is_err(), "{end} bytes of {message:?}");
        }
        for end in 0..tail.len() {
            let told = read(&head, &tail[..end]);
            assert!(told.is_err(), "{end} bytes of the tail of {message:?}");
        }
        let has_tail = matches!(message, Message::Log(_) | Message::Ask(_) | Message::Told(_));
        let longer = if has_tail {
            read(&head, &[&tail[..], &[0]].concat())
        } else {
            read(&[&head[..], &[0]].concat(), &tail)
        };
        assert!(longer.is_err(), "one byte more than {message:?}");
    }
    for tag in 8..=u8::MAX {
        assert!(read(&[tag], &[]).is_err());
    }
}

#[test]
fn any_other_bytes_are_refused_or_another_message() {
    let mut rng = Rng::new(5);
    let mut refused = 0;
    for message in messages() {
        let Pieces(head, tail) = body(&message).decode().expect("it has pieces");
        for _ in 0..1000 {
            let (mut head, mut tail) = (head.clone(), tail.clone());
            for bytes in [&mut head, &mut tail] {
                if !bytes.is_empty() && rng.below(3) > 0 {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] = rng.next() as u8;
                }
            }
            // No panic: what comes out is a message, or none.
            match read(&head, &tail) {
                Ok(other) => assert_eq!(body(&other).decode::<Message>(), Ok(other)),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 1000, "most are refused: {refused}");
}

#[test]
fn what_no_gateway_makes_of_anything_is_refused() {
    let ask = |first, commands| {
        let ask = GatewayAsks { first, commands, ..GatewayAsks::default() };
        body(&Message::Ask(ask)).decode::<Message>()
    };
    assert!(ask(1, commands()).is_ok());
    // A read is no command, alone or among others; and numbers have an end.
    assert!(ask(1, [Command::One(who(), get("/a"))].into()).is_err());
    assert!(ask(1, [Command::All(who(), [get("/a")].into())].into()).is_err());
    assert!(ask(1, [Command::Ask(Question::One(who(), create("/a", "")))].into()).is_err());
    let ids = (0..65).map(|id| Id { scheme: "digest".into(), id: format!("{id}:") }).collect();
    assert!(ask(1, [Command::Close(Who { ids, ..who() })].into()).is_err());
    assert!(ask(u64::MAX - 10, commands()).is_ok());
    assert!(ask(u64::MAX - 9, commands()).is_err());
    let stands = |members: &[u64], epoch| {
        let members = members.iter().copied().map(NodeId).collect();
        let (is_whole, owes, brings) = (true, false, false);
        let stands = Stands { epoch: Epoch(epoch), members, is_whole, owes, brings };
        body(&Message::Stands { question: 1, stands }).decode::<Message>()
    };
    assert!(stands(&[1, 2], 1).is_ok());
    assert!(stands(&[1, 2], 0).is_err() && stands(&[2, 1], 1).is_err());
    assert!(stands(&[], 1).is_err() && stands(&[1, 1], 1).is_err());
}

#[test]
fn no_gateway_asks_more_at_once_than_may_be() {
    let ask = |commands, questions: usize| {
        let commands = std::vec![Command::NOTHING; commands];
        let question = Question::List("/a".into(), 1);
        let question = OpenQuestion { number: 1, after: 0, question };
        let questions = std::vec![question; questions];
        let ask = GatewayAsks { first: 1, commands, questions, ..GatewayAsks::default() };
        body(&Message::Ask(ask)).decode::<Message>()
    };
    assert!(ask(ASK_MAX, ASK_MAX).is_ok());
    assert!(ask(ASK_MAX + 1, 0).is_err() && ask(0, ASK_MAX + 1).is_err());
}

#[test]
fn no_primary_tells_of_more_than_there_can_be() {
    let told = |life, done| {
        let told = GatewayNews { life, done, ..GatewayNews::default() };
        body(&Message::Told(told)).decode::<Message>()
    };
    assert!(told(LIFE_MAX, 1 << 48).is_ok());
    assert!(told(LIFE_MAX + 1, 0).is_err(), "numbers of its changes would not fit");
    assert!(told(0, (1 << 48) + 1).is_err() && told(u64::MAX, u64::MAX).is_err());
    let applied = |life| {
        let message = Message::Applied { life, touch: u64::MAX, upto: Op(u64::MAX) };
        body(&message).decode::<Message>()
    };
    assert!(applied(LIFE_MAX).is_ok() && applied(LIFE_MAX + 1).is_err());
}

#[test]
fn no_frame_has_more_parts_than_may_be() {
    let beat = vsr::Message::Beat { view: VIEW, commit: Op(2), end: Op(4), round: 9, held: Op(1) };
    let parts =
        |count: usize| Message::Log((0..count).map(|_| (GroupId(1), beat.clone())).collect());
    assert!(body(&parts(PARTS_MAX)).decode::<Message>().is_ok());
    assert!(body(&parts(PARTS_MAX + 1)).decode::<Message>().is_err());
    assert!(body(&parts(0)).decode::<Message>().is_err());
}

#[test]
fn what_a_host_gone_wrong_says_stops_nobody() {
    let mut world = hosts(4);
    world.run(Span::secs(1));
    let one = world.open(0);
    assert!(world.one(&one, create("/a", "x")).is_ok());
    world.refusals = Some(Vec::new());
    let gone_wrong = world.hosts[3].me;
    world.crash(3);
    let mut rng = Rng::new(11);
    let said = messages().into_iter().filter(|message| {
        let is_told = matches!(message, Message::Told(_) | Message::Applied { .. });
        is_told || matches!(message, Message::Ask(_) | Message::WhoLeads { .. })
    });
    let mut heard = 0;
    for message in said.cycle().take(3000) {
        let Pieces(mut head, mut tail) = body(&message).decode().expect("it has pieces");
        for bytes in [&mut head, &mut tail] {
            for _ in 0..rng.below(4) {
                if !bytes.is_empty() {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] = if rng.below(2) == 0 { rng.next() as u8 } else { 0xff };
                }
            }
        }
        let Ok(message) = read(&head, &tail) else { continue };
        if matches!(message, Message::Log(_) | Message::Leads(_)) {
            continue;
        }
        heard += 1;
        let to = rng.below(3) as usize;
        world.turn(to, |process, cx| process.on_message(gone_wrong, message, cx));
        world.run(Span::micros(rng.below(2000)));
    }
    assert!(heard > 300, "{heard} were read");
    assert!(world.one(&one, set("/a", "y", None)).is_ok());
    assert!(world.run_until(SOON, |world| world.data(1, "/a") == Some("y".into())));
    world.agree();
}
