//! Many lives of one directory: the same keys over and over, tables, segments that are used again,
//! groups longer than a segment, and ends of every kind, also of lives that wrote nothing.

use crate::damage::log::PAGE;
use crate::damage::recycling::{narrow, newest};
use crate::host::{
    State, batch, contents, delete, fast_clock, frozen_clock, new_directory, put, serve_with,
};
use crate::image::Image;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::{Batch, Log};
use quorate_store::{Directory, Opened, Options};

const LIVES: u64 = 16;

/// What the store must hold after each batch.
pub struct Model {
    pub rng: Rng,
    pub states: Vec<State>,
    synced: usize,
}

impl Model {
    pub fn new(seed: u64) -> Model {
        Model { rng: Rng::new(seed), states: vec![State::default()], synced: 0 }
    }

    pub fn written(&self) -> usize {
        self.states.len() - 1
    }

    fn value(&mut self) -> Vec<u8> {
        let bytes = match self.rng.below(60) {
            0 => self.rng.between(60_000, 200_000),
            1..6 => self.rng.between(1, 20_000),
            _ => self.rng.below(60),
        };
        (0..bytes).map(|at| (self.states.len() as u64 * 31 + at) as u8).collect()
    }

    pub fn next(&mut self) -> Batch {
        let mut state = self.states[self.written()].clone();
        let mut writes = Vec::new();
        for _ in 0..self.rng.below(4) {
            let name = [self.rng.below(12) as u8];
            let value = self.value();
            let write = match self.rng.below(6) {
                0..2 => delete(&name),
                2..4 => put(&name, &value),
                _ => state.log_write(&mut self.rng, &value),
            };
            state.apply(&write);
            writes.push(write);
        }
        self.states.push(state);
        batch(self.written() as u64, writes)
    }

    fn check(&self, opened: &Opened, what: &str) {
        assert!(
            contents(&opened.reader) == self.states[self.written()].pairs,
            "{what}: other pairs"
        );
    }

    /// Takes in what a start found; tells how many batches were lost.
    fn recover(&mut self, opened: &Opened, what: &str) -> usize {
        let (before, recovered) = (self.written(), opened.recovered.0 as usize);
        let possible = self.synced..=before;
        assert!(possible.contains(&recovered), "{what}: {recovered}, not of {possible:?}");
        self.states.truncate(recovered + 1);
        self.synced = recovered;
        self.check(opened, what);
        before - recovered
    }

    /// Writes groups, some of them synced. Returns what the directory looked like at the last sync.
    fn live(&mut self, opened: &mut Opened, directory: &Directory, what: &str) -> Image {
        let mut synced = Image::of(directory.path());
        let groups = if self.rng.below(3) == 0 { self.rng.below(3) } else { self.rng.below(60) };
        for _ in 0..groups {
            let group: Vec<Batch> = (0..self.rng.between(1, 3)).map(|_| self.next()).collect();
            opened.log.apply(&group).expect("applied");
            if self.rng.below(3) == 0 {
                opened.log.sync().expect("synced");
                self.synced = self.written();
                synced = Image::of(directory.path());
            }
            if self.rng.below(8) == 0 {
                self.check(opened, what);
            }
        }
        if self.rng.below(2) == 0 {
            opened.log.settle().expect("settled");
        }
        synced
    }
}

/// What a disk may hold after a loss of power: of the segment that is written to, each page as it
/// was when it was synced last, or as it was written since.
pub fn torn(synced: &Image, now: &Image, rng: &mut Rng) -> Image {
    let (mut image, mut synced) = (now.clone(), synced.clone());
    let (name, _) = newest(&mut image);
    if !synced.files.contains_key(&name) {
        return image;
    }
    let name = name.to_str().expect("plain");
    let (before, bytes) = (synced.padded(name), image.padded(name));
    let odds = rng.between(1, 4);
    for at in (PAGE..bytes.len()).step_by(PAGE) {
        if rng.below(odds) == 0 {
            bytes[at..at + PAGE].copy_from_slice(&before[at..at + PAGE]);
        }
    }
    image
}

pub fn options(rng: &mut Rng) -> Options {
    Options { memtable_bytes: [300, 3000, 200_000][rng.below(3) as usize], ..narrow() }
}

#[test]
fn however_its_lives_end_a_directory_holds_all_that_was_synced() {
    let (mut lost, mut cut) = (0, 0);
    for seed in 0..8 {
        let (mut place, mut model) = (new_directory(), Model::new(seed));
        for life in 0..LIVES {
            let what = format!("seed {seed} life {life}");
            let clock = if model.rng.below(2) == 0 { fast_clock() } else { frozen_clock() };
            let served = serve_with(place.path(), clock, &options(&mut model.rng));
            let (directory, mut opened) = served.expect(&what);
            lost += model.recover(&opened, &what);
            cut += u64::from(opened.cut.is_some());
            let synced = model.live(&mut opened, &directory, &what);
            let end = if model.written() == 0 { 0 } else { model.rng.below(3) };
            if end == 0 {
                opened.log.close().expect("closed");
                drop(opened.reader);
                directory.stop_cleanly().expect("stopped");
                model.synced = model.written();
                continue;
            }
            let now = Image::of(directory.path());
            drop((opened, directory));
            place = if end == 1 {
                model.synced = model.written();
                now.restore()
            } else {
                torn(&synced, &now, &mut model.rng).restore()
            };
        }
    }
    assert!(lost > 10 && cut > 0, "{lost} {cut}");
}
