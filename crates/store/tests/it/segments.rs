//! Which files a log has: none of them grows, comes or goes.

use crate::damage::Verdict;
use crate::host::{batch, contents, frozen_clock, serve_with};
use crate::image::Image;
use crate::recycling::{Victim, expected, judge, narrow, newest, segments};
use quorate_kernel::storage::Log;
use std::path::PathBuf;

#[test]
fn no_segment_grows_and_none_comes_or_goes() {
    let mut victim = Victim::new();
    victim.write(40, true);
    let shape = |image: &Image| -> Vec<(PathBuf, u64)> {
        segments(image).into_iter().map(|name| (name.clone(), image.files[&name].length)).collect()
    };
    let before = shape(&victim.image());
    assert_eq!(before.len(), 4);
    (0..200).for_each(|_| victim.write(5000, true));
    assert_eq!(shape(&victim.image()), before);
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
