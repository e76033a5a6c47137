//! Hostile input: the corpus and all that other tests send, whole, in pieces and changed at random;
//! and bytes of no kind.
//!
//! A connection must survive it with bounded memory: no panic, no operation that an honest client
//! could not have asked for, the same answers however the input is split, and each request is
//! answered, or the connection ends.

use crate::wire::{about, close, frame, framed, get, ping, request, split};
use crate::world::{CONNECT, World, opened, replied, stat};
use bytes::Bytes;
use quorate_kernel::limits::{CLIENT_OPERATIONS_MAX, JUTE_FRAME_BYTES_MAX};
use quorate_kernel::operation::Outcome;
use quorate_kernel::rng::Rng;
use quorate_kernel::tree::{Act, Failure, Id, Item, Told};
use std::path::{Path, PathBuf};

/// How often each file is changed and tried again.
const MUTATIONS: u64 = 60;
/// How often bytes of no kind are tried.
const NOISES: u64 = 2000;

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/zookeeper");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the corpus is in the repository")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|end| end == "bin"))
        .collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).expect("readable"))).collect()
}

/// What an engine might tell.
pub fn told(act: &Act) -> Result<Told, Failure> {
    match act {
        Act::One(item) => item_told(item),
        Act::All(items) | Act::Each(items) => Ok(Told::Many(items.iter().map(item_told).collect())),
        Act::WhoAmI => Ok(Told::Ids(vec![Id::anyone()])),
        Act::Authenticate { credential, .. } if credential.is_empty() => Err(Failure::AuthFailed),
        _ => Ok(Told::Done),
    }
}

fn item_told(item: &Item) -> Result<Told, Failure> {
    check(item);
    Ok(match item {
        Item::Create { path, .. } => Told::Created { path: path.clone(), stat: stat() },
        Item::Delete { version: Some(_), .. } => return Err(Failure::BadVersion),
        Item::Delete { .. } | Item::Check { .. } => Told::Done,
        Item::Set { .. } | Item::SetAcl { .. } | Item::Exists { .. } => Told::Stat(stat()),
        Item::Get { .. } => Told::Data { data: Some(Bytes::from_static(b"v")), stat: stat() },
        Item::Children { .. } => Told::Children { names: vec!["c".into()], stat: stat() },
        Item::GetAcl { .. } => Told::Acl { acl: vec![], stat: stat() },
        Item::Ephemerals { .. } => Told::Paths(vec!["/e".into()]),
        Item::CountBelow { .. } => Told::Count(1),
    })
}

/// An honest client could have asked it.
fn check(item: &Item) {
    if !matches!(item, Item::Ephemerals { .. }) {
        let (path, is_before_number) =
            (item.path(), matches!(item, Item::Create { sequential: true, .. }));
        assert!(path.starts_with('/') && !path.contains('\0'), "{path:?}");
        assert!(path.len() == 1 || !path.ends_with('/') || is_before_number, "{path:?}");
    }
}

/// Sends the input in pieces of this length, opens a session, and ends every operation; what was
/// answered, and how many requests were asked of the engine.
fn run(input: &[u8], step: usize) -> (Vec<u8>, usize) {
    let (mut world, mut answers, mut asked) = (World::default(), Vec::new(), 0);
    let mut is_open = false;
    for piece in input.chunks(step) {
        world.receive(piece);
        loop {
            assert!(world.asked.operations.len() < CLIENT_OPERATIONS_MAX);
            if !is_open && !world.asked.watches.is_empty() {
                is_open = true;
                world.tell(opened());
            } else if let Some((_, _, ask)) = world.asked.operations.first() {
                asked += 1;
                let told = told(&ask.act);
                world.complete(0, replied(9, told));
            } else {
                break;
            }
        }
        answers.extend_from_slice(&world.take());
        assert!(world.session.held_bytes() == 0, "all is answered");
        let begun = world.session.begun_bytes(&world.input);
        assert!(begun <= 4 + JUTE_FRAME_BYTES_MAX && world.input.len() <= begun);
        assert!(world.session.is_closing() || world.session.wants_input(), "it goes on or ends");
        if !world.session.is_closing() {
            let has_begun = !world.input.is_empty();
            assert_eq!(world.session.is_waiting_for_rest(&world.input), has_begun);
        }
    }
    (answers, asked)
}

/// Survives the input in one piece and in others, with the same answers.
fn survive(input: &[u8], steps: &[usize], name: &dyn std::fmt::Display) {
    let whole = run(input, input.len().max(1)).0;
    for step in steps {
        assert!(run(input, *step).0 == whole, "{name} in pieces of {step}");
    }
    let is_text = |frame: &[u8]| frame.iter().take(4).all(|byte| byte.is_ascii_graphic());
    let (frames, rest) = split(&whole);
    assert!(rest.is_empty() || frames.is_empty() && is_text(rest), "{name}: half an answer");
}

/// Many honest requests on one connection.
fn honest() -> Vec<u8> {
    let made: Vec<(&str, &str)> = [crate::writes::MADE, &[("flags", "00000003")]].concat();
    let ending: Vec<(&str, &str)> =
        [crate::writes::MADE, &[("flags", "00000006"), ("ttl", "0000000000000001")]].concat();
    let version = [("version", "ffffffff")];
    let watches = [("zxid", "0000000000000001"), ("data", "00000001 00000002 2f61")];
    let none = ("none", "00000000");
    let watches = [&watches[..], &[none, none, none, none]].concat();
    let element = [("type", "00000002"), ("done", "00"), ("err", "00000000")];
    let element = [&element[..], &[("path", "00000002 2f61")], &version].concat();
    let end = [("type", "ffffffff"), ("done", "01"), ("err", "ffffffff")];
    let multi = [&element[..], &element, &end].concat();
    [
        frame(CONNECT),
        about(1, 1, "/a", &made),
        about(2, 21, "/a", &ending),
        get(3, "/a", true),
        about(4, 2, "/a", &version),
        about(5, 12, "/a", &[("watch", "01")]),
        about(6, 9, "/a", &[]),
        request(7, 14, &multi),
        request(-8, 105, &watches),
        ping(),
        about(8, 106, "/a", &[("mode", "00000001")]),
        request(9, 107, &[]),
        request(10, 77, &[]),
        close(11),
    ]
    .concat()
}

#[test]
fn honest_requests_are_all_answered() {
    let (answers, asked) = run(&honest(), 5);
    assert_eq!((split(&answers).0.len(), asked), (14, 12));
}

#[test]
fn the_corpus_is_survived_and_splits_change_nothing() {
    let files = corpus();
    assert!(files.len() >= 30, "the corpus was found");
    for (path, input) in files {
        survive(&input, &[1, 2, 7, 1000], &path.display());
    }
    survive(&honest(), &[1, 2, 3, 5, 64], &"what is honest");
}

#[test]
fn the_changed_corpus_is_survived() {
    let mut files: Vec<Vec<u8>> = corpus().into_iter().map(|(_, input)| input).collect();
    files.push(honest());
    for (number, input) in files.iter().enumerate() {
        for seed in 0..MUTATIONS {
            let mut rng = Rng::new(seed << 8 | number as u64);
            let changed = mutate(input.clone(), &files, &mut rng);
            let step = 1 + rng.below(20) as usize;
            survive(&changed, &[step], &format!("seed {seed} of file {number}"));
        }
    }
}

fn mutate(mut bytes: Vec<u8>, files: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    const PIECES: &[&[u8]] = &[
        &[0xff; 4],
        &[0; 4],
        &[0x7f, 0xff, 0xff, 0xff],
        &[0x80, 0, 0, 0],
        &[0, 0, 0, 14],
        &[0, 0, 0, 2, b'/', b'a'],
        b"ruok",
        b"/",
        b"\0",
    ];
    bytes.truncate(6_000);
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() as u64 + 1) as usize;
        match rng.below(5) {
            0 if at < bytes.len() => bytes[at] = rng.next() as u8,
            1 if at < bytes.len() => {
                bytes.remove(at);
            }
            2 => {
                let piece = PIECES[rng.below(PIECES.len() as u64) as usize];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 => bytes.truncate(at),
            _ => {
                let other = &files[rng.below(files.len() as u64) as usize];
                bytes.extend_from_slice(&other[..other.len().min(2000)]);
            }
        }
    }
    bytes
}

/// Frames of any contents, each with a header, and a kind that means something as often as not.
#[test]
fn any_frame_is_answered_and_any_bytes_are_survived() {
    for seed in 0..NOISES {
        let mut rng = Rng::new(seed);
        let mut input = frame(CONNECT);
        let mut requests = 0;
        for xid in 0..rng.below(6) {
            let mut body = (xid as i32).to_be_bytes().to_vec();
            body.extend((rng.below(110) as i32).to_be_bytes());
            for _ in 0..rng.below(60) {
                let byte = if rng.below(2) == 0 { 0 } else { rng.next() as u8 };
                body.push(byte);
            }
            input.extend(framed(&body));
            requests += 1;
        }
        let (answers, _) = run(&input, input.len());
        let frames = split(&answers).0;
        let closes = |frame: &Vec<u8>| frame[12..16] == (-115i32).to_be_bytes();
        let is_cut = frames[1..].last().is_some_and(closes);
        assert!(frames.len() == 1 + requests || is_cut, "seed {seed}");

        let noise: Vec<u8> = (0..rng.below(200)).map(|_| rng.next() as u8).collect();
        survive(&noise, &[3], &format!("noise {seed}"));
        survive(&[frame(CONNECT), noise].concat(), &[5], &format!("noise {seed}"));
    }
}

#[test]
fn an_outcome_that_is_none_ends_the_connection() {
    let mut world = World::open();
    world.receive(&get(1, "/a", false));
    world.complete(0, Outcome::More(vec![]));
    assert!(world.is_over());
}
