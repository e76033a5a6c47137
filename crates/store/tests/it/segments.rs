//! Which files a log has: none of them grows, comes or goes.

use crate::damage::Verdict;
use crate::image::Image;
use crate::recycling::{Victim, judge, segments};
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
