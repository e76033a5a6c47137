//! Hostile input: every file of the corpus, whole, in pieces, and changed at random.
//!
//! A session must survive it with bounded memory: no panic, no operation that an honest client
//! could not have asked for, no reply bytes without end, and the same replies however the input is
//! split.

mod common;

use common::World;
use quorate_doors::resp::client::ReplyParser;
use quorate_kernel::limits::{CLIENT_OPERATIONS_MAX, KEY_BYTES_MAX, REPLY_BYTES_MAX};
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;
use std::path::{Path, PathBuf};

/// How often each file is changed and tried again.
const MUTATIONS: u64 = 60;

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/resp");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the corpus is in the repository")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|end| end == "bin"))
        .collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).expect("readable"))).collect()
}

/// Sends the input in pieces of this length and ends every operation; the replies.
fn run(input: &[u8], step: usize) -> Vec<u8> {
    let mut world = World::default();
    let mut replies = Vec::new();
    for piece in input.chunks(step) {
        world.receive(piece);
        assert!(world.started.0.len() <= CLIENT_OPERATIONS_MAX);
        for (_, _, operation) in &world.started.0 {
            assert!(operation.key().is_none_or(|key| key.len() <= KEY_BYTES_MAX));
            if let Operation::Put { value, .. } = operation {
                assert!(value.len() <= 1 << 20);
            }
        }
        replies.extend_from_slice(&world.settle());
        assert!(replies.len() < REPLY_BYTES_MAX);
    }
    assert!(world.session.is_idle());
    replies
}

/// The replies are well formed to the last byte.
fn check_replies(replies: &[u8]) {
    let mut input = bytes::BytesMut::from(replies);
    let mut parser = ReplyParser::default();
    while parser.next(&mut input).expect("a server sends replies").is_some() {}
    assert!(input.is_empty(), "half a reply: {input:?}");
}

#[test]
fn the_corpus_is_survived_and_splits_change_nothing() {
    let files = corpus();
    assert!(files.len() >= 20, "the corpus was found");
    for (path, input) in files {
        let whole = run(&input, input.len().max(1));
        check_replies(&whole);
        for step in [1, 2, 7, 1000] {
            assert!(run(&input, step) == whole, "{} in pieces of {step}", path.display());
        }
    }
}

#[test]
fn the_changed_corpus_is_survived() {
    let files = corpus();
    for (number, (_, input)) in files.iter().enumerate() {
        for seed in 0..MUTATIONS {
            let mut rng = Rng::new(seed << 8 | number as u64);
            let changed = mutate(input.clone(), &files, &mut rng);
            let whole = run(&changed, changed.len().max(1));
            check_replies(&whole);
            let step = 1 + rng.below(20) as usize;
            assert!(run(&changed, step) == whole, "seed {seed} of file {number}, step {step}");
        }
    }
}

fn mutate(mut bytes: Vec<u8>, files: &[(PathBuf, Vec<u8>)], rng: &mut Rng) -> Vec<u8> {
    const PIECES: &[&[u8]] = &[
        b"\r\n",
        b"*",
        b"$",
        b"-1",
        b"0",
        b"*3\r\n",
        b"$3\r\n",
        b"9999999999",
        b"\0",
        b"'",
        b"\"",
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
                let other = &files[rng.below(files.len() as u64) as usize].1;
                bytes.extend_from_slice(&other[..other.len().min(2000)]);
            }
        }
    }
    bytes
}
