//! Which files a log has: segments come as they are needed, and none of them goes.

use crate::damage::log::Verdict;
use crate::damage::recycling::{
    UNFINISHED, Victim, expected, judge, narrow, newest, segments, whole,
};
use crate::host::{batch, contents, frozen_clock, new_directory, serve_with, small};
use crate::image::Image;
use quorate_kernel::storage::Log;
use quorate_store::Options;
use std::path::{Path, PathBuf};

#[test]
fn segments_come_as_they_are_needed_and_then_none_comes_or_goes() {
    let mut victim = Victim::new();
    let shape = |image: &Image| -> Vec<(PathBuf, u64)> {
        segments(image).into_iter().map(|name| (name.clone(), image.files[&name].length)).collect()
    };
    for (groups, count) in [(1, 1), (3, 1), (4, 2), (18, 2), (19, 3)] {
        while victim.written() < groups {
            victim.write(40, true);
        }
        assert_eq!(shape(&victim.image()).len(), count, "after {groups} groups");
    }
    (0..200).for_each(|_| victim.write(5000, true));
    let before = shape(&victim.image());
    assert!((2..=4).contains(&before.len()), "{before:?}");
    for _ in 0..200 {
        victim.write(5000, true);
        assert_eq!(shape(&victim.image()), before);
    }
}

#[test]
fn a_segment_that_was_never_finished_is_nothing() {
    let long = Options { segment_bytes: 8 << 20, log_bytes_max: 32 << 20, ..small() };
    let mut victim = Victim::at(new_directory(), Vec::new(), &long);
    while !victim.image().files.contains_key(Path::new(UNFINISHED)) {
        assert!(victim.written() < 30, "another one is begun behind the first quarter");
        victim.write(250_000, true);
    }
    let synced = victim.written();
    assert_eq!((segments(&victim.image()).len(), synced), (1, 9));
    let verdict = judge(&victim.image(), &victim.sizes, synced, "unfinished");
    assert_eq!(verdict, whole(synced));
    let again = victim.image().restore();
    let served = serve_with(again.path(), frozen_clock(), &long).expect("opened");
    assert!(!again.path().join(UNFINISHED).exists(), "its space is given back");
    drop(served);
}

#[test]
fn batches_that_write_nothing_take_no_more_of_the_disk() {
    let mut victim = Victim::new();
    victim.write(40, true);
    for lsn in 2..=300 {
        victim.opened.log.apply(&[batch(lsn, Vec::new())]).expect("applied");
        victim.opened.log.sync().expect("synced");
    }
    victim.opened.log.settle().expect("settled");
    let mut image = victim.image();
    assert!(segments(&image).len() <= 4, "{:?}", segments(&image));
    assert_eq!(newest(&mut image).1.first, 300);
    let again = image.restore();
    let (_directory, opened) = serve_with(again.path(), frozen_clock(), &narrow()).expect("opened");
    assert_eq!(opened.recovered.0, 300);
    assert!(contents(&opened.reader) == expected(&victim.sizes, 1));
}

#[test]
fn a_segment_that_is_gone_is_missed() {
    let mut victim = Victim::new();
    for _ in 0..60 {
        victim.write(40, true);
        if victim.written() % 15 != 3 {
            continue;
        }
        for name in segments(&victim.image()) {
            let mut image = victim.image();
            image.remove(name.to_str().expect("plain"));
            let what = format!("{} after {}", name.display(), victim.written());
            let verdict = judge(&image, &victim.sizes, victim.written(), &what);
            assert_eq!(verdict, Verdict::Refused, "{what}");
        }
    }
}

#[test]
fn a_crash_while_a_segment_gets_its_name_loses_nothing() {
    let mut victim = Victim::new();
    (0..3).for_each(|_| victim.write(40, true));
    let before = victim.image();
    victim.write(40, true);
    let after = victim.image();
    assert_eq!((segments(&before).len(), segments(&after).len()), (1, 2));
    let unlisted = after.with("log/segments.toml", &before);
    assert_eq!(judge(&unlisted, &victim.sizes, 4, "it is on no list"), whole(4));
    let mut unnamed = after.with("log/segments.toml", &before);
    let made = unnamed.files.remove(Path::new("log/1.segment")).expect("it is there");
    for (place, length) in [(UNFINISHED, 0), (UNFINISHED, 5000), ("log/segments.new", 20)] {
        let mut image = unnamed.clone();
        let mut content = made.clone();
        content.bytes.truncate(length);
        content.length = length as u64;
        image.files.insert(PathBuf::from(place), content);
        let what = format!("{length} bytes of {place}");
        assert_eq!(judge(&image, &victim.sizes, 4, &what), whole(4), "{what}");
    }
}
