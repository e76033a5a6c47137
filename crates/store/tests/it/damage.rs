//! The damage table: what a store does that finds its files changed.
//!
//! The rule behind every row: it either refuses with a clear error and leaves the database as it
//! is, or it holds every batch that was known to be synced.

use crate::host::{
    batch, contents, fast_clock, frozen_clock, new_directory, put, serve, serve_with, small,
};
use crate::image::{Image, is_journal};
use quorate_kernel::ids::Lsn;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::{Log, Reader};
use quorate_kernel::time::{Span, Time};
use quorate_store::{Clock, DirectoryError, Opened, Options};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BATCHES: u64 = 300;
const PAGE: usize = 4096;

/// A host that was killed after it wrote synced batches of one key each.
struct Victim {
    image: Image,
    /// Where each batch ends in the journal; batch 0 ends where the first begins.
    ends: Vec<usize>,
}

fn victim(clock: Clock, options: &Options) -> Victim {
    write_victim(clock, options, BATCHES)
}

/// A victim whose last batch is not marked: only the one before it is known to be synced.
fn torn_victim() -> Victim {
    write_victim(fast_clock(), &small(), BATCHES - 1)
}

fn write_victim(clock: Clock, options: &Options, synced: u64) -> Victim {
    let place = new_directory();
    let (directory, mut opened) = serve_with(place.path(), clock, options).expect("opened");
    for lsn in 1..=BATCHES {
        opened.log.apply(&[batch(lsn, vec![put(&name(lsn), &value(lsn))])]).expect("applied");
        if lsn <= synced {
            opened.log.sync().expect("synced");
        }
    }
    settle(&opened, options);
    let mut image = Image::of(place.path());
    drop((opened, directory));
    image.shorten_journal();
    let bytes = &image.journal().bytes;
    let trailers = (4..=bytes.len()).filter(|at| bytes[at - 4..*at] == *b"FJL\x03");
    let ends: Vec<usize> = std::iter::once(0).chain(trailers).collect();
    assert_eq!(ends.len() as u64, BATCHES + 1, "the journal is as the tests expect it");
    assert_eq!(ends.last(), Some(&bytes.len()));
    Victim { image, ends }
}

/// Waits until a tiny memtable's content is in tables, so that the image is one moment's.
fn settle(opened: &Opened, options: &Options) {
    let is_tiny = options.memtable_bytes < 1000;
    while is_tiny && opened.reader.stats().memtable_bytes > 0 {
        std::thread::yield_now();
    }
}

fn name(lsn: u64) -> Vec<u8> {
    format!("key-{lsn:012}").into_bytes()
}

fn value(lsn: u64) -> Vec<u8> {
    let mut rng = Rng::new(lsn);
    (0..40).map(|_| rng.next() as u8).collect()
}

/// What became of a damaged directory.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Refused,
    Opened { recovered: u64, was_cut: bool },
}

/// Opens a damaged image and checks the rule: nothing up to `synced` may be missing.
fn judge(image: &Image, synced: u64, what: &str) -> Verdict {
    let place = image.restore();
    match serve(place.path(), frozen_clock()) {
        Err(error) => {
            let is_clear = matches!(
                error,
                DirectoryError::WritesMissing { .. } | DirectoryError::Damaged { .. }
            );
            assert!(is_clear, "{what}: {error}");
            assert!(error.to_string().contains("new node id"), "{what}: {error}");
            let after = Image::of(place.path());
            assert!(after.database() == image.database(), "{what}: it was changed: {error}");
            Verdict::Refused
        }
        Ok((_directory, mut opened)) => {
            let recovered = opened.recovered.0;
            assert!(recovered >= synced, "{what}: opened with {recovered} of {synced}");
            check_contents(&opened, recovered, what);
            let next = batch(recovered + 1, vec![put(b"next", b"1")]);
            opened.log.apply(&[next]).expect("applied");
            opened.log.sync().expect("synced");
            Verdict::Opened { recovered, was_cut: opened.cut.is_some() }
        }
    }
}

fn check_contents(opened: &Opened, recovered: u64, what: &str) {
    let found = contents(&opened.reader);
    let expected = (1..=recovered).map(|lsn| (name(lsn), value(lsn))).collect();
    assert!(found == expected, "{what}: {} keys of {recovered}", found.len());
}

/// Judges the victim with its journal changed.
fn judge_journal(
    victim: &Victim,
    synced: u64,
    what: &str,
    change: impl FnOnce(&mut Vec<u8>),
) -> Verdict {
    let mut image = victim.image.clone();
    change(&mut image.journal().bytes);
    image.journal().trim();
    judge(&image, synced, what)
}

#[test]
fn an_undamaged_image_opens_whole() {
    let victim = victim(fast_clock(), &small());
    let verdict = judge(&victim.image, BATCHES, "undamaged");
    assert_eq!(verdict, Verdict::Opened { recovered: BATCHES, was_cut: false });
}

#[test]
fn a_flipped_byte_in_the_middle_is_refused_wherever_it_is() {
    let victim = victim(fast_clock(), &small());
    let mut rng = Rng::new(1);
    let (start, end) = (victim.ends[149], victim.ends[150]);
    let in_one_batch = (start..end).map(|at| (at, 1 << (at % 8)));
    let journal = victim.ends[BATCHES as usize - 1] as u64;
    let anywhere = (0..60).map(|_| (rng.below(journal) as usize, rng.between(1, 255) as u8));
    let mut refused = 0;
    let cases: Vec<(usize, u8)> = in_one_batch.chain(anywhere).collect();
    for (at, mask) in &cases {
        let what = format!("byte {at} ^ {mask:#x}");
        let verdict = judge_journal(&victim, BATCHES, &what, |bytes| bytes[*at] ^= mask);
        refused += usize::from(verdict == Verdict::Refused);
    }
    assert!(cases.len() > 150, "{} cases", cases.len());
    assert_eq!(refused, cases.len(), "no flip before the last batch goes unnoticed");
}

#[test]
fn a_page_of_zeros_is_refused_wherever_it_is() {
    let victim = victim(fast_clock(), &small());
    let length = victim.image.clone().journal().bytes.len();
    let mut pages: Vec<usize> = (0..length).step_by(PAGE).collect();
    pages.extend([victim.ends[150] - 1, victim.ends[150], length - PAGE]);
    assert!(pages.len() > 8);
    for at in pages {
        let what = format!("zeros from byte {at}");
        let verdict = judge_journal(&victim, BATCHES, &what, |bytes| {
            let end = bytes.len().min(at + PAGE);
            bytes[at..end].fill(0);
        });
        assert_eq!(verdict, Verdict::Refused, "{what}");
    }
}

#[test]
fn the_last_batch_is_missed_when_it_is_marked() {
    let victim = victim(fast_clock(), &small());
    let (start, end) = (victim.ends[BATCHES as usize - 1], victim.ends[BATCHES as usize]);
    for at in (start..end).step_by(9) {
        let what = format!("cut at {at}");
        let verdict = judge_journal(&victim, BATCHES, &what, |bytes| bytes.truncate(at));
        assert_eq!(verdict, Verdict::Refused, "{what}");
    }
}

#[test]
fn a_torn_tail_beyond_what_was_synced_is_cut_and_opens() {
    let victim = torn_victim();
    let (start, end) = (victim.ends[BATCHES as usize - 1], victim.ends[BATCHES as usize]);
    let synced = BATCHES - 1;
    let (mut cut, mut whole, mut garbage) = (0, 0, 0);
    let mut count = |verdict: Verdict, what: &str| match verdict {
        Verdict::Opened { recovered: BATCHES, was_cut: false } => whole += 1,
        Verdict::Opened { recovered: BATCHES, was_cut: true } => garbage += 1,
        Verdict::Opened { recovered, was_cut } if recovered == synced => {
            cut += u32::from(was_cut);
        }
        other => panic!("{what}: {other:?}"),
    };
    for at in start..end {
        if at % 4 == 1 {
            let what = format!("cut at {at}");
            count(judge_journal(&victim, synced, &what, |bytes| bytes.truncate(at)), &what);
        }
        let what = format!("byte {at} flipped");
        count(judge_journal(&victim, synced, &what, |bytes| bytes[at] ^= 0x20), &what);
    }
    let mut rng = Rng::new(2);
    for round in 0..20 {
        let what = format!("garbled {round}");
        let verdict = judge_journal(&victim, synced, &what, |bytes| {
            bytes[start..].iter_mut().for_each(|byte| *byte = rng.next() as u8);
        });
        count(verdict, &what);
        let what = format!("garbage {round} behind the end");
        let verdict = judge_journal(&victim, synced, &what, |bytes| {
            bytes.extend((0..50).map(|_| rng.between(1, 255) as u8));
        });
        count(verdict, &what);
    }
    let zeroed = judge_journal(&victim, synced, "zeroed", |bytes| bytes.truncate(start));
    assert_eq!(zeroed, Verdict::Opened { recovered: synced, was_cut: false });
    assert!(cut > 150, "{cut} tails were cut");
    assert_eq!(garbage, 20, "garbage behind the last batch does it no harm");
    assert!(whole < 10, "{whole} flips of the sequence number do no harm to the last batch");
}

#[test]
fn a_cut_tail_is_kept_aside() {
    let victim = torn_victim();
    let start = victim.ends[BATCHES as usize - 1];
    let mut image = victim.image.clone();
    image.journal().bytes[start + 40] ^= 1;
    let tail = image.journal().bytes[start..].to_vec();
    let place = image.restore();
    let (_directory, opened) = serve(place.path(), frozen_clock()).expect("opened");
    let cut = opened.cut.expect("a tail was cut");
    assert_eq!(cut.bytes as usize, tail.len());
    assert_eq!(std::fs::read(&cut.copy).expect("readable"), tail);
    assert!(cut.copy.starts_with(place.path()));
}

#[test]
fn only_a_few_cut_tails_are_kept() {
    let place = torn_victim().image.restore();
    let journal = place.path().join("db/0.jnl");
    for round in 0..11 {
        let (directory, opened) = serve(place.path(), frozen_clock()).expect("opened");
        assert_eq!(opened.cut.is_some(), round > 0);
        if let Some(cut) = &opened.cut {
            assert_eq!(std::fs::read(&cut.copy).expect("the newest is kept"), [0xee; 20]);
            let copies = std::fs::read_dir(place.path().join("cut")).expect("readable");
            assert_eq!(copies.count(), 8.min(round));
        }
        drop((opened, directory));
        let mut file = std::fs::File::options().append(true).open(&journal).expect("opened");
        file.write_all(&[0xee; 20]).expect("appended");
    }
}

#[test]
fn damage_within_the_last_second_is_noticed_by_what_later_batches_know() {
    let victim = victim(frozen_clock(), &small());
    for index in [1, 2, 100, 150, 250] {
        let at = victim.ends[index] + 30;
        let what = format!("byte {at}");
        let verdict = judge_journal(&victim, 1, &what, |bytes| bytes[at] ^= 4);
        assert_eq!(verdict, Verdict::Refused, "{what}: the mark is at 1, the claims are not");
    }
    // The stated limit: of what only the mark could tell, the last second is not covered.
    let half = victim.ends[150];
    let verdict = judge_journal(&victim, 1, "half", |bytes| bytes.truncate(half));
    assert_eq!(verdict, Verdict::Opened { recovered: 150, was_cut: false });
}

#[test]
fn a_tail_that_is_gone_is_missed_once_the_host_was_idle_for_a_second() {
    let now = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&now);
    let place = new_directory();
    let clock: Clock = Box::new(move || Time(shown.load(Ordering::Relaxed)));
    let (directory, mut opened) = serve(place.path(), clock).expect("opened");
    for lsn in 1..=BATCHES {
        opened.log.apply(&[batch(lsn, vec![put(&name(lsn), &value(lsn))])]).expect("applied");
        opened.log.sync().expect("synced");
    }
    now.store(Span::secs(1).0, Ordering::Relaxed);
    opened.log.maintain().expect("maintained");
    let mut image = Image::of(place.path());
    drop((opened, directory));
    let bytes = &mut image.journal().bytes;
    bytes.truncate(bytes.len() / 2);
    assert_eq!(judge(&image, BATCHES, "half"), Verdict::Refused);
}

#[test]
fn files_that_are_gone_are_missed() {
    let victim = victim(fast_clock(), &small());
    let names = ["db/0.jnl", "db/version", "db/keyspaces", "db/keyspaces/0", "db/keyspaces/1"];
    let currents = ["db/keyspaces/0/current", "db/keyspaces/1/current"];
    for name in names.into_iter().chain(currents) {
        let mut image = victim.image.clone();
        image.remove(name);
        let place = image.restore();
        let error = serve(place.path(), frozen_clock()).expect_err(name);
        assert!(matches!(error, DirectoryError::WritesMissing { .. }), "{name}: {error}");
        let after = Image::of(place.path());
        let kept = image
            .database()
            .into_iter()
            .all(|(path, content)| after.files.get(path).is_some_and(|now| now == content));
        assert!(kept, "{name}: what was left is still there");
    }
}

#[test]
fn a_database_that_was_never_finished_begins_anew() {
    let place = new_directory();
    std::fs::create_dir(place.path().join("db/keyspaces")).expect("created");
    std::fs::write(place.path().join("db/0.jnl"), [0; 64]).expect("written");
    let (_directory, opened) = serve(place.path(), frozen_clock()).expect("opened");
    assert_eq!(opened.recovered, Lsn(0));
}

/// Every write goes to a table at once.
fn tiny() -> Options {
    Options { memtable_bytes: 1, ..small() }
}

#[test]
fn a_torn_first_batch_of_a_new_journal_opens_if_the_tables_have_the_rest() {
    let in_tables = victim(fast_clock(), &tiny());
    let torn = in_tables.ends[1] - 5;
    let verdict = judge_journal(&in_tables, BATCHES, "in tables", |bytes| bytes.truncate(torn));
    assert_eq!(verdict, Verdict::Opened { recovered: BATCHES, was_cut: true });
    let in_memory = victim(fast_clock(), &small());
    let verdict = judge_journal(&in_memory, BATCHES, "in memory", |bytes| bytes.truncate(torn));
    assert_eq!(verdict, Verdict::Refused);
}

#[test]
fn damaged_tables_never_answer_wrongly() {
    let mut victim = victim(fast_clock(), &tiny());
    victim.image.journal().bytes.clear();
    let names: Vec<_> =
        victim.image.files.keys().filter(|name| name.starts_with("db")).cloned().collect();
    let mut rng = Rng::new(3);
    let (mut refused, mut failed, mut whole) = (0, 0, 0);
    for round in 0..120 {
        let name = &names[round % names.len()];
        let mut image = victim.image.clone();
        let bytes = &mut image.files.get_mut(name).expect("listed").bytes;
        if is_journal(name) || bytes.is_empty() {
            continue;
        }
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] ^= rng.between(1, 255) as u8;
        let place = image.restore();
        let what = format!("{} byte {at}", name.display());
        match serve(place.path(), frozen_clock()) {
            Err(_) => refused += 1,
            Ok((_directory, opened)) => {
                assert_eq!(opened.recovered, Lsn(BATCHES), "{what}");
                let mut found = 0;
                let mut each = |_: &bytes::Bytes, _: &bytes::Bytes| {
                    found += 1;
                    true
                };
                let scanned = opened.reader.scan(b"", &[0xff; 40], &mut each);
                if scanned.is_err() {
                    failed += 1;
                    continue;
                }
                check_contents(&opened, BATCHES, &what);
                whole += 1;
            }
        }
    }
    assert!(refused > 10 && failed + whole > 10, "{refused} {failed} {whole}");
}
