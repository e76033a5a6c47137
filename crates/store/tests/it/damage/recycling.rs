//! The damage table of segments that are used again, of tables that are written meanwhile, and of
//! groups of several pages or segments.

use crate::damage::log::{PAGE, Verdict};
use crate::damage::memory_may_end;
use crate::host::{
    Pairs, batch, contents, fast_clock, frozen_clock, key, new_directory, put, serve_with, small,
};
use crate::image::Image;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Log;
use quorate_store::{Directory, Opened, Options};
use std::path::{Path, PathBuf};

/// Four segments with room for fifteen groups of a page; a memtable becomes a table after 24 pages.
pub fn narrow() -> Options {
    Options { segment_bytes: 64 << 10, log_bytes_max: 256 << 10, ..small() }
}

const GROUPS_OF_TABLE: u64 = 24;
/// A segment that is being made.
pub const UNFINISHED: &str = "log/new.segment";

/// A store whose every batch has one key of its own, with a value whose bytes are given.
pub struct Victim {
    place: tempfile::TempDir,
    directory: Directory,
    pub opened: Opened,
    pub sizes: Vec<usize>,
}

impl Victim {
    pub fn new() -> Victim {
        Victim::at(new_directory(), Vec::new(), &narrow())
    }

    pub fn at(place: tempfile::TempDir, sizes: Vec<usize>, options: &Options) -> Victim {
        let served = serve_with(place.path(), fast_clock(), options);
        let (directory, opened) = served.expect("opened");
        Victim { place, directory, opened, sizes }
    }

    /// Writes the next batch, and waits for what tables are written because of it.
    pub fn write(&mut self, bytes: usize, is_synced: bool) {
        self.sizes.push(bytes);
        let lsn = self.sizes.len() as u64;
        let write = put(&lsn.to_be_bytes(), &value(lsn, bytes));
        self.opened.log.apply(&[batch(lsn, vec![write])]).expect("applied");
        if is_synced {
            self.opened.log.sync().expect("synced");
        }
        self.opened.log.settle().expect("settled");
    }

    pub fn written(&self) -> u64 {
        self.sizes.len() as u64
    }

    pub fn image(&self) -> Image {
        Image::of(self.place.path())
    }
}

fn value(lsn: u64, bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(lsn);
    (0..bytes).map(|_| rng.next() as u8).collect()
}

pub fn expected(sizes: &[usize], upto: u64) -> Pairs {
    let pair = |(lsn, bytes): (u64, &usize)| (lsn.to_be_bytes().to_vec(), value(lsn, *bytes));
    (1..=upto).zip(sizes).map(pair).collect()
}

/// Opens an image and checks the rule: nothing up to `synced` may be missing, and what is there is
/// what was written. What is written then stays, and what was cut stays away.
pub fn judge(image: &Image, sizes: &[usize], synced: u64, what: &str) -> Verdict {
    let place = image.restore();
    let (directory, opened) = match serve_with(place.path(), frozen_clock(), &narrow()) {
        Ok(served) => served,
        Err(error) => {
            assert!(error.to_string().contains("new node id"), "{what}: {error}");
            return Verdict::Refused;
        }
    };
    let recovered = opened.recovered.0;
    assert!(recovered >= synced, "{what}: opened with {recovered} of {synced}");
    assert!(contents(&opened.reader) == expected(sizes, recovered), "{what}: other pairs");
    let all = expected(sizes, sizes.len() as u64);
    assert!(memory_may_end(&all, synced, recovered), "{what}: {recovered}");
    let was_cut = opened.cut.is_some();
    drop((directory, opened));
    let mut victim = Victim::at(place, sizes[..recovered as usize].to_vec(), &narrow());
    victim.write(77, true);
    let sizes = victim.sizes.clone();
    let again = Victim::at(victim.image().restore(), sizes.clone(), &narrow());
    assert_eq!(again.opened.recovered.0, recovered + 1, "{what}");
    assert!(contents(&again.opened.reader) == expected(&sizes, recovered + 1), "{what}: later");
    drop(again.directory);
    Verdict::Opened { recovered, was_cut }
}

pub fn whole(recovered: u64) -> Verdict {
    Verdict::Opened { recovered, was_cut: false }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub fn segments(image: &Image) -> Vec<PathBuf> {
    let names = image.files.keys().filter(|name| name.as_path() != Path::new(UNFINISHED));
    names.filter(|name| name.extension().is_some_and(|of| of == "segment")).cloned().collect()
}

/// A head of a group in a segment.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    at: usize,
    generation: u64,
    pub first: u64,
}

fn heads(image: &mut Image, name: &Path) -> Vec<Place> {
    let bytes = image.padded(name.to_str().expect("plain names"));
    let is_head = |at: &usize| bytes[at + 8..at + 12] == *b"QGR\x01";
    let places = (PAGE..bytes.len()).step_by(PAGE).filter(is_head);
    let place = |at| {
        let (generation, first) = (number(bytes, at + 16), number(bytes, at + 24));
        Place { at, generation, first }
    };
    places.map(place).collect()
}

/// The segment with the newest group, and where that is.
pub fn newest(image: &mut Image) -> (PathBuf, Place) {
    let names = segments(image);
    let all = names.into_iter().flat_map(|name| {
        let places = heads(image, &name);
        places.into_iter().map(move |place| (name.clone(), place))
    });
    all.max_by_key(|(_, place)| (place.first, place.generation)).expect("there are groups")
}

#[test]
fn what_an_earlier_use_of_a_segment_left_is_never_taken_for_new() {
    let mut victim = Victim::new();
    let (mut left_behind, mut fresh) = (0, 0);
    for _ in 0..150 {
        victim.write(40, true);
        let mut image = victim.image();
        let (name, last) = newest(&mut image);
        let behind = heads(&mut image, &name).into_iter().find(|place| place.at > last.at);
        match behind {
            Some(place) => {
                assert!(place.generation < last.generation);
                left_behind += 1;
            }
            None => fresh += 1,
        }
        if victim.written().is_multiple_of(4) {
            let what = format!("after {}", victim.written());
            let verdict = judge(&image, &victim.sizes, victim.written(), &what);
            assert_eq!(verdict, whole(victim.written()), "{what}");
        }
    }
    assert!(left_behind > 60 && fresh > 30, "{left_behind} {fresh}");
}

#[test]
fn a_torn_group_before_those_of_an_earlier_use_is_cut() {
    let mut victim = Victim::new();
    (0..100).for_each(|_| victim.write(40, true));
    victim.write(40, false);
    let mut image = victim.image();
    let (name, last) = newest(&mut image);
    assert!(heads(&mut image, &name).iter().any(|place| place.at > last.at), "old groups follow");
    for at in [0, 20, 63, 64, 100] {
        let mut image = image.clone();
        image.padded(name.to_str().expect("plain"))[last.at + at] ^= 1;
        let verdict = judge(&image, &victim.sizes, 100, &format!("byte {at}"));
        assert_eq!(verdict, Verdict::Opened { recovered: 100, was_cut: at >= 64 }, "byte {at}");
    }
}

/// Images of before and after the first memtable became a table, with the first segment free then.
fn around_a_table() -> (Image, Image, Vec<usize>) {
    let mut victim = Victim::new();
    (1..GROUPS_OF_TABLE).for_each(|_| victim.write(40, true));
    let before = victim.image();
    victim.write(40, true);
    let after = victim.image();
    let header = |image: &Image| image.clone().padded("log/0.segment")[..PAGE].to_vec();
    assert_ne!(header(&before), header(&after), "the segment is ready for its next use");
    (before, after, victim.sizes)
}

#[test]
fn a_crash_between_a_table_and_the_next_use_of_its_segment_loses_nothing() {
    let (before, after, sizes) = around_a_table();
    let image = after.with("log/0.segment", &before);
    let verdict = judge(&image, &sizes, GROUPS_OF_TABLE, "not renewed");
    assert_eq!(verdict, whole(GROUPS_OF_TABLE));
    assert_eq!(judge(&after, &sizes, GROUPS_OF_TABLE, "renewed"), whole(GROUPS_OF_TABLE));
}

#[test]
fn a_crash_while_a_table_is_written_loses_nothing() {
    let (before, after, sizes) = around_a_table();
    let log = after.with("log/0.segment", &before);
    let begun = log.with("db", &before);
    let is_new = |name: &&PathBuf| name.starts_with("db") && !begun.files.contains_key(*name);
    let new: Vec<PathBuf> = after.files.keys().filter(is_new).cloned().collect();
    let is_table = |name: &PathBuf| name.components().any(|part| part.as_os_str() == "tables");
    assert!(new.iter().any(is_table) && !new.iter().all(is_table), "a table and a list: {new:?}");
    assert_eq!(judge(&begun, &sizes, GROUPS_OF_TABLE, "nothing yet"), whole(GROUPS_OF_TABLE));
    // The table and then the list of tables, each cut off somewhere or whole, but never named.
    let order = new.iter().filter(|name| is_table(name)).chain(new.iter().filter(|n| !is_table(n)));
    let mut image = begun.clone();
    for name in order {
        for hundredths in [0, 40, 100] {
            let mut content = after.files[name].clone();
            let length = content.bytes.len() * hundredths / 100;
            content.bytes.truncate(length);
            content.length = length as u64;
            image.files.insert(name.clone(), content);
            let what = format!("{hundredths} hundredths of {}", name.display());
            let verdict = judge(&image, &sizes, GROUPS_OF_TABLE, &what);
            assert_eq!(verdict, whole(GROUPS_OF_TABLE), "{what}");
        }
    }
}

#[test]
fn a_table_that_is_lost_after_its_segment_was_used_again_is_missed() {
    let (before, after, sizes) = around_a_table();
    let image = after.with("db", &before);
    let verdict = judge(&image, &sizes, GROUPS_OF_TABLE, "lost");
    assert_eq!(verdict, Verdict::Refused);
}

#[test]
fn a_damaged_header_is_refused_unless_nothing_is_needed_of_its_segment() {
    let (_, after, sizes) = around_a_table();
    let judge_without = |image: &Image, name: &str, sizes: &[usize]| {
        let mut image = image.clone();
        let bytes = image.padded(name);
        bytes[17] ^= 1;
        bytes[2048 + 17] ^= 1;
        judge(&image, sizes, sizes.len() as u64, name)
    };
    // The second segment holds batches that are in the table, the third was never used.
    for name in ["log/1.segment", "log/2.segment"] {
        assert_eq!(judge_without(&after, name, &sizes), whole(GROUPS_OF_TABLE), "{name}");
    }
    // The first says that the table is there.
    assert_eq!(judge_without(&after, "log/0.segment", &sizes), Verdict::Refused);
    let mut victim = Victim::new();
    (0..20).for_each(|_| victim.write(40, true));
    for name in ["log/0.segment", "log/1.segment"] {
        let verdict = judge_without(&victim.image(), name, &victim.sizes);
        assert_eq!(verdict, Verdict::Refused, "{name}");
    }
}

#[test]
fn a_hole_before_a_group_that_was_not_synced_ends_the_log() {
    let mut victim = Victim::new();
    (0..5).for_each(|_| victim.write(40, true));
    (0..4).for_each(|_| victim.write(40, false));
    for hole in 6..10_usize {
        let mut image = victim.image();
        image.padded("log/0.segment")[PAGE * hole..PAGE * (hole + 1)].fill(0);
        let verdict = judge(&image, &victim.sizes, 5, &format!("hole {hole}"));
        let recovered = hole as u64 - 1;
        assert_eq!(verdict, Verdict::Opened { recovered, was_cut: hole < 9 }, "hole {hole}");
    }
}

#[test]
fn a_value_that_looks_like_a_group_is_never_taken_for_one() {
    let mut victim = Victim::new();
    (0..3).for_each(|_| victim.write(40, true));
    let generation = newest(&mut victim.image()).1.generation;
    // What a client can know: all but the salt.
    let mut head = [0; 64];
    head[8..12].copy_from_slice(b"QGR\x01");
    for (at, word) in [(16, generation), (24, 1 << 40), (32, 1 << 40), (40, (1 << 40) - 1)] {
        head[at..at + 8].copy_from_slice(&word.to_be_bytes());
    }
    head[55] = 1;
    let checksum = xxhash_rust::xxh3::xxh3_64(&head[8..]);
    head[..8].copy_from_slice(&checksum.to_be_bytes());
    let name = 4_u64.to_be_bytes();
    let mut value = vec![0; PAGE - head.len() - 7 - key(&name).len()];
    value.extend(head);
    victim.opened.log.apply(&[batch(4, vec![put(&name, &value)])]).expect("applied");
    let mut image = victim.image();
    let bytes = image.padded("log/0.segment");
    assert_eq!(bytes[PAGE * 5..PAGE * 5 + head.len()], head, "it begins a page");
    bytes[PAGE * 4..PAGE * 5].fill(0);
    assert_eq!(judge(&image, &victim.sizes, 3, "its own group is torn"), whole(3));
}

#[test]
fn a_group_that_is_cut_in_its_middle_is_refused_or_cut() {
    for is_synced in [true, false] {
        let mut victim = Victim::new();
        (0..3).for_each(|_| victim.write(40, true));
        victim.write(5 * PAGE, is_synced);
        for page in 4..10 {
            let mut image = victim.image();
            image.padded("log/0.segment")[PAGE * page..PAGE * (page + 1)].fill(0);
            let what = format!("page {page}, synced: {is_synced}");
            let verdict = judge(&image, &victim.sizes, 3 + u64::from(is_synced), &what);
            let cut = Verdict::Opened { recovered: 3, was_cut: page > 4 };
            assert_eq!(verdict, if is_synced { Verdict::Refused } else { cut }, "{what}");
        }
    }
}

#[test]
fn a_group_that_is_longer_than_a_segment_is_there_wholly_or_not_at_all() {
    for is_synced in [true, false] {
        let more = Options { log_bytes_max: 1 << 20, ..narrow() };
        let mut victim = Victim::at(new_directory(), Vec::new(), &more);
        (0..3).for_each(|_| victim.write(40, true));
        victim.write(150 << 10, is_synced);
        let verdict = judge(&victim.image(), &victim.sizes, 4, "whole");
        assert_eq!(verdict, whole(4));
        let (name, last) = newest(&mut victim.image());
        assert_eq!((last.first, last.at), (4, PAGE));
        let mut image = victim.image();
        image.padded(name.to_str().expect("plain"))[last.at + 5000] ^= 1;
        let what = format!("a torn part, synced: {is_synced}");
        let verdict = judge(&image, &victim.sizes, 3 + u64::from(is_synced), &what);
        let cut = Verdict::Opened { recovered: 3, was_cut: true };
        assert_eq!(verdict, if is_synced { Verdict::Refused } else { cut }, "{what}");
    }
    // Longer than all segments together, and more of them after it.
    let mut victim = Victim::new();
    for bytes in [600 << 10, 40, 300 << 10, 90 << 10, 40] {
        victim.write(bytes, true);
        let what = format!("after {}", victim.written());
        let verdict = judge(&victim.image(), &victim.sizes, victim.written(), &what);
        assert_eq!(verdict, whole(victim.written()), "{what}");
    }
}

/// What a disk may hold after a loss of power: of the segment that is written to, each page as it
/// was when it was synced last, or as it was written since.
fn torn(synced: &Image, now: &Image, rng: &mut Rng) -> Image {
    let mut image = now.clone();
    let (name, _) = newest(&mut image);
    let name = name.to_str().expect("plain");
    let Some(before) = synced.files.get(Path::new(name)) else { return image };
    let mut before = before.clone();
    before.bytes.resize(before.length as usize, 0);
    let bytes = image.padded(name);
    // The header is synced before the use that it begins.
    for at in (PAGE..bytes.len()).step_by(PAGE) {
        if rng.below(2) == 0 {
            bytes[at..at + PAGE].copy_from_slice(&before.bytes[at..at + PAGE]);
        }
    }
    image
}

#[test]
fn a_loss_of_power_leaves_all_that_was_synced_and_whole_batches_of_the_rest() {
    let (mut lost, mut kept, mut cut) = (0, 0, 0);
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let mut victim = Victim::new();
        let mut synced = (0, victim.image());
        for _ in 0..rng.between(5, 60) {
            let bytes = if rng.below(4) == 0 { rng.between(1, 30_000) } else { 40 };
            let is_synced = rng.below(4) == 0;
            victim.write(bytes as usize, is_synced);
            if is_synced {
                synced = (victim.written(), victim.image());
            }
        }
        let now = victim.image();
        for round in 0..3 {
            let image = torn(&synced.1, &now, &mut rng);
            let what = format!("seed {seed} round {round}");
            match judge(&image, &victim.sizes, synced.0, &what) {
                Verdict::Refused => panic!("{what}: a loss of power is no damage"),
                Verdict::Opened { recovered, was_cut } => {
                    lost += victim.written() - recovered;
                    kept += recovered - synced.0;
                    cut += u64::from(was_cut);
                }
            }
        }
    }
    assert!(lost > 20 && kept > 10 && cut > 5, "{lost} {kept} {cut}");
}
