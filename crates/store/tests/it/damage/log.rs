//! The damage table: what a store does that finds its files changed.
//!
//! The rule behind every row: it either refuses with a clear error and leaves its files as they
//! are, or it holds every batch that was known to be synced.

use crate::damage::memory_may_end;
use crate::host::{
    Pairs, batch, contents, fast_clock, frozen_clock, new_directory, put, serve, serve_with, small,
};
use crate::image::Image;
use quorate_kernel::ids::Lsn;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::{Log, Reader};
use quorate_kernel::time::{Span, Time};
use quorate_store::{Clock, DirectoryError, Opened, Options};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const BATCHES: u64 = 300;
pub const PAGE: usize = 4096;
/// The segment that a new directory writes to first.
const FIRST: &str = "log/0.segment";
/// The bytes of a group before its body.
const HEAD: usize = 64;

/// Room for a victim in one segment, which it fills so far that another one is there.
pub fn roomy() -> Options {
    Options { segment_bytes: 5 << 18, log_bytes_max: 15 << 18, ..small() }
}

/// A host that was killed after it wrote synced batches of one key each, one a page.
fn victim(clock: Clock, options: &Options) -> Image {
    write_victim(clock, options, BATCHES)
}

/// A victim whose last batch is not marked: only the one before it is known to be synced.
fn torn_victim() -> Image {
    write_victim(fast_clock(), &roomy(), BATCHES - 1)
}

fn write_victim(clock: Clock, options: &Options, synced: u64) -> Image {
    let place = new_directory();
    let (directory, mut opened) = serve_with(place.path(), clock, options).expect("opened");
    for lsn in 1..=BATCHES {
        write(&mut opened, lsn, lsn <= synced);
    }
    opened.log.settle().expect("tables are written");
    let image = Image::of(place.path());
    drop((opened, directory));
    image
}

pub fn write(opened: &mut Opened, lsn: u64, is_synced: bool) {
    opened.log.apply(&[batch(lsn, vec![put(&name(lsn), &value(lsn))])]).expect("applied");
    if is_synced {
        opened.log.sync().expect("synced");
    }
}

/// Where a batch of the victim begins.
fn start(lsn: u64) -> usize {
    PAGE * lsn as usize
}

/// Where the bytes of a batch end, before the zeros that fill its page.
fn end(lsn: u64) -> usize {
    start(lsn) + HEAD + 7 + 5 + name(lsn).len() + value(lsn).len()
}

pub fn name(lsn: u64) -> Vec<u8> {
    format!("key-{lsn:012}").into_bytes()
}

pub fn value(lsn: u64) -> Vec<u8> {
    let mut rng = Rng::new(lsn);
    (0..40).map(|_| rng.next() as u8).collect()
}

/// What became of a damaged directory.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Refused,
    Opened { recovered: u64, was_cut: bool },
}

pub const WHOLE: Verdict = Verdict::Opened { recovered: BATCHES, was_cut: false };

/// Opens a damaged image and checks the rule: nothing up to `synced` may be missing.
pub fn judge(image: &Image, synced: u64, what: &str) -> Verdict {
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
            let before = image.trimmed();
            assert!(after.store() == before.store(), "{what}: it was changed: {error}");
            Verdict::Refused
        }
        Ok((directory, mut opened)) => {
            let recovered = opened.recovered.0;
            assert!(recovered >= synced, "{what}: opened with {recovered} of {synced}");
            check_contents(&opened, recovered, what);
            assert!(memory_may_end(&expected(BATCHES), synced, recovered), "{what}: {recovered}");
            let was_cut = opened.cut.is_some();
            write(&mut opened, recovered + 1, true);
            // What was cut never comes back, nor does anything that was written since go.
            opened.log.settle().expect("settled");
            let again = Image::of(place.path()).restore();
            drop((opened, directory));
            let (_directory, opened) = serve(again.path(), frozen_clock()).expect(what);
            assert_eq!((opened.recovered.0, &opened.cut), (recovered + 1, &None), "{what}");
            check_contents(&opened, recovered + 1, what);
            Verdict::Opened { recovered, was_cut }
        }
    }
}

fn expected(recovered: u64) -> Pairs {
    (1..=recovered).map(|lsn| (name(lsn), value(lsn))).collect()
}

fn check_contents(opened: &Opened, recovered: u64, what: &str) {
    let found = contents(&opened.reader);
    assert!(found == expected(recovered), "{what}: {} keys of {recovered}", found.len());
}

/// Judges the victim with its segment changed.
fn judge_log(
    victim: &Image,
    synced: u64,
    what: &str,
    change: impl FnOnce(&mut Vec<u8>),
) -> Verdict {
    let mut image = victim.clone();
    change(image.padded(FIRST));
    judge(&image, synced, what)
}

#[test]
fn an_undamaged_image_opens_whole() {
    let victim = victim(fast_clock(), &roomy());
    assert_eq!(judge(&victim, BATCHES, "undamaged"), WHOLE);
}

#[test]
fn a_flipped_byte_in_the_middle_is_refused_wherever_it_is() {
    let victim = victim(fast_clock(), &roomy());
    let mut rng = Rng::new(1);
    let in_one_batch = (start(150)..end(150)).step_by(3).map(|at| (at, 1 << (at % 8)));
    let mut anywhere = || {
        let lsn = rng.between(1, BATCHES - 1);
        let at = rng.below((end(lsn) - start(lsn)) as u64) as usize;
        (start(lsn) + at, rng.between(1, 255) as u8)
    };
    let anywhere: Vec<(usize, u8)> = (0..60).map(|_| anywhere()).collect();
    for (at, mask) in in_one_batch.chain(anywhere) {
        let what = format!("byte {at} ^ {mask:#x}");
        let verdict = judge_log(&victim, BATCHES, &what, |bytes| bytes[at] ^= mask);
        assert_eq!(verdict, Verdict::Refused, "{what}");
    }
    // What fills a page says nothing, and a header has two copies.
    for at in [0, 20, 40, 2050, end(150), start(151) - 1] {
        let what = format!("byte {at} between groups");
        let verdict = judge_log(&victim, BATCHES, &what, |bytes| bytes[at] ^= 1);
        assert_eq!(verdict, WHOLE, "{what}");
    }
}

#[test]
fn a_page_of_zeros_is_refused_wherever_it_is() {
    let victim = victim(fast_clock(), &roomy());
    for lsn in (0..=BATCHES).step_by(13).chain([BATCHES]) {
        let what = format!("zeros in place of batch {lsn}");
        let from = start(lsn);
        let verdict = judge_log(&victim, BATCHES, &what, |bytes| bytes[from..from + PAGE].fill(0));
        assert_eq!(verdict, Verdict::Refused, "{what}");
    }
}

#[test]
fn the_last_batch_is_missed_when_it_is_marked() {
    let victim = victim(fast_clock(), &roomy());
    for at in (start(BATCHES)..end(BATCHES)).step_by(9) {
        let what = format!("zeros from {at}");
        let verdict = judge_log(&victim, BATCHES, &what, |bytes| bytes[at..].fill(0));
        assert_eq!(verdict, Verdict::Refused, "{what}");
    }
}

#[test]
fn a_torn_tail_beyond_what_was_synced_is_cut_and_opens() {
    let victim = torn_victim();
    let synced = BATCHES - 1;
    let (mut cut, mut clean) = (0, 0);
    let mut count = |verdict: Verdict, what: &str| match verdict {
        Verdict::Opened { recovered, was_cut: true } if recovered == synced => cut += 1,
        Verdict::Opened { recovered, was_cut: false } if recovered == synced => clean += 1,
        other => panic!("{what}: {other:?}"),
    };
    for at in start(BATCHES)..end(BATCHES) {
        if at % 4 == 1 {
            let what = format!("zeros from {at}");
            count(judge_log(&victim, synced, &what, |bytes| bytes[at..].fill(0)), &what);
        }
        let what = format!("byte {at} flipped");
        count(judge_log(&victim, synced, &what, |bytes| bytes[at] ^= 0x20), &what);
    }
    // A head that is not whole is nothing, as what an earlier use of the segment left behind.
    assert!(cut > 60 && clean >= HEAD, "{cut} were cut, {clean} were not seen");
    let mut rng = Rng::new(2);
    for round in 0..10 {
        let what = format!("garbage {round} behind the end");
        let verdict = judge_log(&victim, synced, &what, |bytes| {
            let from = start(BATCHES + 1);
            bytes[from..from + 3 * PAGE].iter_mut().for_each(|byte| *byte = rng.next() as u8);
        });
        assert_eq!(verdict, WHOLE, "{what}");
    }
}

#[test]
fn a_cut_tail_is_kept_aside() {
    let mut image = torn_victim();
    let at = start(BATCHES);
    image.padded(FIRST)[at + HEAD + 20] ^= 1;
    let tail = image.padded(FIRST)[at..at + PAGE].to_vec();
    let place = image.restore();
    let (_directory, opened) = serve(place.path(), frozen_clock()).expect("opened");
    let cut = opened.cut.expect("a tail was cut");
    assert_eq!(cut.bytes as usize, tail.len());
    assert_eq!(std::fs::read(&cut.copy).expect("readable"), tail);
    assert!(cut.copy.starts_with(place.path()));
}

#[test]
fn only_a_few_cut_tails_are_kept() {
    let mut image = write_victim(fast_clock(), &roomy(), BATCHES - 12);
    for round in 0..11 {
        let at = start(BATCHES - round);
        image.padded(FIRST)[at + HEAD + 20] ^= 1;
        let place = image.restore();
        let (directory, opened) = serve(place.path(), frozen_clock()).expect("opened");
        let cut = opened.cut.as_ref().expect("a tail was cut");
        assert!(cut.copy.exists(), "the newest is kept");
        let copies = std::fs::read_dir(place.path().join("cut")).expect("readable");
        assert_eq!(copies.count() as u64, 8.min(round + 1));
        let after = Image::of(place.path());
        drop((opened, directory));
        image = image.with("cut", &after).with("start.toml", &after);
    }
}

#[test]
fn damage_within_the_last_second_is_noticed_by_what_later_batches_know() {
    let victim = victim(frozen_clock(), &roomy());
    for lsn in [2, 3, 100, 150, 250, BATCHES - 1] {
        let at = start(lsn) + HEAD + 20;
        let what = format!("byte {at}");
        let verdict = judge_log(&victim, 1, &what, |bytes| bytes[at] ^= 4);
        assert_eq!(verdict, Verdict::Refused, "{what}: the mark is at 1, the claims are not");
    }
    // The stated limit: of what only the mark could tell, the last second is not covered.
    let verdict = judge_log(&victim, 1, "half", |bytes| bytes[start(151)..].fill(0));
    assert_eq!(verdict, Verdict::Opened { recovered: 150, was_cut: false });
}

#[test]
fn a_tail_that_is_gone_is_missed_once_the_host_was_idle_for_a_second() {
    let now = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&now);
    let place = new_directory();
    let clock: Clock = Box::new(move || Time(shown.load(Ordering::Relaxed)));
    let (directory, mut opened) = serve_with(place.path(), clock, &roomy()).expect("opened");
    (1..=BATCHES).for_each(|lsn| write(&mut opened, lsn, true));
    now.store(Span::secs(1).0, Ordering::Relaxed);
    opened.log.maintain().expect("maintained");
    opened.log.settle().expect("settled");
    let image = Image::of(place.path());
    drop((opened, directory));
    let verdict = judge_log(&image, BATCHES, "half", |bytes| bytes[start(151)..].fill(0));
    assert_eq!(verdict, Verdict::Refused);
}

#[test]
fn files_that_are_gone_are_missed() {
    let victim = victim(fast_clock(), &roomy());
    let names = ["log/0.segment", "log/1.segment", "log/segments.toml"];
    let more = ["db/version", "db/keyspaces", "db/keyspaces/0", "db/keyspaces/1"];
    let currents = ["db/keyspaces/0/current", "db/keyspaces/1/current"];
    for name in names.into_iter().chain(more).chain(currents) {
        let mut image = victim.clone();
        image.remove(name);
        assert_eq!(judge(&image, BATCHES, name), Verdict::Refused, "{name}");
    }
}

#[test]
fn files_of_another_length_are_missed() {
    let victim = victim(fast_clock(), &roomy());
    for name in ["log/0.segment", "log/1.segment", "log/segments.toml"] {
        for change in [-1, 1] {
            let mut image = victim.clone();
            image.padded(name);
            let content = image.files.get_mut(Path::new(name)).expect("it is there");
            content.length = content.length.saturating_add_signed(change);
            content.bytes.truncate(content.length as usize);
            let what = format!("{name} {change:+}");
            assert_eq!(judge(&image, BATCHES, &what), Verdict::Refused, "{what}");
        }
    }
}

#[test]
fn a_database_that_was_never_finished_begins_anew() {
    let place = new_directory();
    std::fs::create_dir(place.path().join("db/keyspaces")).expect("created");
    std::fs::write(place.path().join("db/0.jnl"), [0; 64]).expect("written");
    std::fs::write(place.path().join("log/new.segment"), [0; 64]).expect("written");
    let (_directory, opened) = serve(place.path(), frozen_clock()).expect("opened");
    assert_eq!(opened.recovered, Lsn(0));
}

#[test]
fn damaged_tables_never_answer_wrongly() {
    // Every write goes to a table at once.
    let tiny = Options { memtable_bytes: 1, ..roomy() };
    let victim = victim(fast_clock(), &tiny);
    let names: Vec<_> =
        victim.files.keys().filter(|name| name.starts_with("db")).cloned().collect();
    let mut rng = Rng::new(3);
    let (mut refused, mut failed, mut whole) = (0, 0, 0);
    for round in 0..120 {
        let name = &names[round % names.len()];
        let mut image = victim.clone();
        let bytes = &mut image.files.get_mut(name).expect("listed").bytes;
        if bytes.is_empty() {
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
                let mut each = |_: &bytes::Bytes, _: &bytes::Bytes| true;
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
