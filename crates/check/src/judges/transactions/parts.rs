//! A history taken apart: what no operation binds together is judged apart.

use super::step::{self, Cell, Need, Needed, Step};
use crate::history::History;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

/// Numbers for keys, and for keys with the values that they may have.
#[derive(Default)]
pub(super) struct Names<'a> {
    keys: BTreeMap<&'a Bytes, u32>,
    key_names: Vec<&'a Bytes>,
    cells: BTreeMap<(u32, Option<&'a Bytes>), Cell>,
    cell_names: Vec<(u32, Option<&'a Bytes>)>,
}

impl<'a> Names<'a> {
    fn key_of(&mut self, key: &'a Bytes) -> u32 {
        let next = u32::try_from(self.key_names.len()).expect("keys are fewer than items");
        let number = *self.keys.entry(key).or_insert(next);
        if number == next {
            self.key_names.push(key);
        }
        number
    }

    /// The numbers of a key, and of the key with this value.
    pub fn cell_of(&mut self, key: &'a Bytes, value: Option<&'a Bytes>) -> (u32, Cell) {
        let key = self.key_of(key);
        let next = u32::try_from(self.cell_names.len()).expect("values are fewer than items");
        let number = *self.cells.entry((key, value)).or_insert(next);
        if number == next {
            self.cell_names.push((key, value));
        }
        (key, number)
    }
}

/// Keys that operations bind together, and the operations on them. Its steps number its keys, and
/// the values that these may have, as they stand here.
#[derive(Default)]
pub(super) struct Part<'a> {
    pub keys: Vec<&'a Bytes>,
    /// Keys with a value or with none; first each key with none, which is how it begins.
    pub cells: Vec<(u32, Option<&'a Bytes>)>,
    /// The operations in the order they began.
    pub steps: Vec<Step>,
}

/// The parts of a history.
pub(super) fn of(history: &History) -> Vec<Part<'_>> {
    let mut names = Names::default();
    let entries = (0u32..).zip(history.entries());
    let steps: Vec<Step> =
        entries.flat_map(|(number, entry)| step::of(entry, number, &mut names)).collect();
    let mut roots = Roots((0..names.key_names.len()).collect());
    for step in &steps {
        let mut keys = step.all_keys();
        if let Some(first) = keys.next() {
            keys.for_each(|key| roots.join(first as usize, key as usize));
        }
    }
    let mut parts: BTreeMap<usize, (Renaming, Part<'_>)> = BTreeMap::new();
    for (number, name) in (0u32..).zip(&names.key_names) {
        let (renaming, part) = parts.entry(roots.find(number as usize)).or_default();
        let key = u32::try_from(part.keys.len()).expect("keys are numbered");
        renaming.keys.insert(number, key);
        part.keys.push(name);
        part.cells.push((key, None));
    }
    for step in steps {
        // What contradicts itself may have nothing to do with any key's history.
        let root = step.all_keys().next().map_or(0, |key| roots.find(key as usize));
        let (renaming, part) = parts.entry(root).or_default();
        let step = renaming.step(step, &names, &mut part.cells);
        part.steps.push(step);
    }
    parts.into_values().map(|(_, part)| part).filter(|part| !part.steps.is_empty()).collect()
}

/// Sets of keys, each known by one of them.
struct Roots(Vec<usize>);

impl Roots {
    fn find(&mut self, key: usize) -> usize {
        let mut at = key;
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a] = b;
    }
}

/// From the numbers of a history to those of a part.
#[derive(Default)]
struct Renaming {
    keys: BTreeMap<u32, u32>,
    cells: BTreeMap<Cell, Cell>,
}

impl Renaming {
    fn cell<'a>(
        &mut self,
        cell: Cell,
        names: &Names<'a>,
        cells: &mut Vec<(u32, Option<&'a Bytes>)>,
    ) -> Cell {
        let (key, value) = names.cell_names[cell as usize];
        let key = self.keys[&key];
        if value.is_none() {
            return key;
        }
        *self.cells.entry(cell).or_insert_with(|| {
            cells.push((key, value));
            u32::try_from(cells.len() - 1).expect("values are numbered")
        })
    }

    fn step<'a>(
        &mut self,
        mut step: Step,
        names: &Names<'a>,
        cells: &mut Vec<(u32, Option<&'a Bytes>)>,
    ) -> Step {
        for Needed { key, need, .. } in &mut step.needs {
            *key = self.keys[key];
            *need = match *need {
                Need::Is(cell) => Need::Is(self.cell(cell, names, cells)),
                Need::IsNot(cell) => Need::IsNot(self.cell(cell, names, cells)),
            };
        }
        step.keys.iter_mut().for_each(|key| *key = self.keys[key]);
        for cell in &mut step.writes {
            *cell = self.cell(*cell, names, cells);
        }
        step
    }
}
