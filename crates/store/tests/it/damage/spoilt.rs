//! Segments of a log of several uses, with groups longer than a segment, spoilt in every way: pages
//! that are gone, changed, or those of another place or another segment.

use crate::damage::log::PAGE;
use crate::damage::recycling::segments;
use crate::host::{contents, fast_clock, frozen_clock, new_directory, serve_with};
use crate::image::Image;
use crate::lives::{Model, options};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Log;
use quorate_store::{DirectoryError, Options};

/// The log of a host that was killed, with every batch marked as synced.
fn victim(model: &mut Model, options: &Options) -> Image {
    let place = new_directory();
    let served = serve_with(place.path(), fast_clock(), options);
    let (_directory, mut opened) = served.expect("opened");
    for _ in 0..model.rng.between(5, 120) {
        opened.log.apply(&[model.next()]).expect("applied");
        opened.log.sync().expect("synced");
    }
    opened.log.settle().expect("settled");
    Image::of(place.path())
}

/// Spoils one segment, and says how.
fn spoil(image: &mut Image, rng: &mut Rng) -> String {
    let names = segments(image);
    let mut name = || names[rng.below(names.len() as u64) as usize].to_str().expect("plain");
    let (name, other) = (name(), name());
    let source = image.padded(other).clone();
    let bytes = image.padded(name);
    let pages = (bytes.len() / PAGE) as u64;
    let mut page = || PAGE * rng.below(pages) as usize;
    let (at, from) = (page(), page());
    let kind = rng.below(6);
    match kind {
        0 => bytes[at..at + PAGE].fill(0),
        1 => bytes[at + rng.below(64) as usize] ^= 1 << rng.below(8),
        2 => bytes[at..at + PAGE].copy_from_slice(&source[from..from + PAGE]),
        3 => bytes[at..].fill(0),
        4 => bytes.copy_from_slice(&source),
        _ => {
            let length = bytes.len() - at.max(from);
            bytes[at..at + length].copy_from_slice(&source[from..from + length]);
        }
    }
    format!("way {kind}: {name} at {at} from {other} at {from}")
}

#[test]
fn spoilt_segments_are_refused_or_nothing_of_them_was_needed() {
    let (mut refused, mut opened_whole) = (0, 0);
    for seed in 0..4 {
        let mut model = Model::new(seed);
        let options = options(&mut model.rng);
        let image = victim(&mut model, &options);
        for round in 0..25 {
            let mut image = image.clone();
            let rng = &mut model.rng;
            let ways: Vec<_> = (0..rng.between(1, 2)).map(|_| spoil(&mut image, rng)).collect();
            let what = format!("seed {seed} round {round}: {ways:?}");
            let place = image.restore();
            match serve_with(place.path(), frozen_clock(), &options) {
                Err(DirectoryError::WritesMissing { .. } | DirectoryError::Damaged { .. }) => {
                    refused += 1;
                }
                served => {
                    let (_directory, opened) = served.expect(&what);
                    assert_eq!(opened.recovered.0 as usize, model.written(), "{what}");
                    let is_whole = contents(&opened.reader) == model.states[model.written()].pairs;
                    assert!(is_whole, "{what}: other pairs");
                    opened_whole += 1;
                }
            }
        }
    }
    assert!(refused > 20 && opened_whole > 20, "{refused} {opened_whole}");
}
