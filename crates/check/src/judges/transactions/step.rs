//! An operation as the search sees it: what it needs of keys, and what it leaves there.

use super::parts::Names;
use crate::history::{Completion, Entry, NEVER};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::change::Change;
use quorate_kernel::operation::Operation;
use quorate_kernel::transaction::{Condition, Item, ItemOutcome};

/// A key with a value that it may have, or with none; such pairs are numbered.
pub(super) type Cell = u32;

/// What must hold of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// The key has this value.
    Is(Cell),
    /// The key has another value.
    IsNot(Cell),
}

/// What must hold of a key before a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needed {
    pub key: u32,
    pub need: Need,
    /// Whether the client asked for it. Otherwise it follows from what the client was told.
    pub is_check: bool,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// What must hold before it.
    pub needs: Vec<Needed>,
    /// What it leaves in keys, each key once.
    pub writes: Vec<Cell>,
    /// The keys of what it writes.
    pub keys: Vec<u32>,
    pub began: u32,
    /// [`NEVER`] if it may happen at any time after it began, or never.
    pub ended: u32,
    /// Which operation of the history it is.
    pub entry: u32,
    /// Whether what its client was told of its items contradicts the items before them.
    pub is_impossible: bool,
}

impl Need {
    /// Whether a key that has this value is as it must be.
    pub fn is_met(self, cell: Cell) -> bool {
        match self {
            Need::Is(needed) => cell == needed,
            Need::IsNot(other) => cell != other,
        }
    }
}

impl Step {
    /// Whether it may never have happened.
    pub fn is_open(&self) -> bool {
        self.ended == NEVER
    }

    /// The keys that it writes, each with what it leaves there.
    pub fn written(&self) -> impl Iterator<Item = (u32, Cell)> {
        self.keys.iter().copied().zip(self.writes.iter().copied())
    }

    /// All keys that it is about; some of them twice.
    pub fn all_keys(&self) -> impl Iterator<Item = u32> {
        self.needs.iter().map(|needed| needed.key).chain(self.keys.iter().copied())
    }

    /// Whether what it leaves can be what a need asks for.
    pub fn may_meet(&self, needed: &Needed) -> bool {
        self.written().any(|(key, cell)| key == needed.key && needed.need.is_met(cell))
    }

    /// The same operation if nobody knew what became of it; nothing if that says nothing.
    pub fn unanswered(&self) -> Option<Step> {
        let needs = self.needs.iter().filter(|needed| needed.is_check).copied().collect();
        let open = Step { needs, ended: NEVER, ..self.clone() };
        (!self.writes.is_empty()).then_some(open)
    }
}

/// What an operation needs and leaves, item by item.
struct Builder<'a, 'n> {
    names: &'n mut Names<'a>,
    needs: Vec<Needed>,
    /// What its items have written so far.
    own: BTreeMap<u32, Cell>,
    is_impossible: bool,
}

impl<'a> Builder<'a, '_> {
    fn need(&mut self, key: u32, need: Need, is_check: bool) {
        match self.own.get(&key) {
            Some(cell) => self.is_impossible |= !need.is_met(*cell),
            None => self.needs.push(Needed { key, need, is_check }),
        }
    }

    fn write(&mut self, key: &'a Bytes, value: Option<&'a Bytes>) {
        let (number, cell) = self.names.cell_of(key, value);
        self.own.insert(number, cell);
    }

    /// It was checked, or told, that a condition holds, or that it does not.
    fn condition(&mut self, key: &'a Bytes, holds: &'a Condition, is_so: bool, is_check: bool) {
        let (value, is_equal) = match holds {
            Condition::Absent => (None, true),
            Condition::Present => (None, false),
            Condition::Value(value) => (Some(value), true),
        };
        let (number, cell) = self.names.cell_of(key, value);
        let need = if is_equal == is_so { Need::Is(cell) } else { Need::IsNot(cell) };
        self.need(number, need, is_check);
    }

    /// A key was found with this value, or with none.
    fn found(&mut self, key: &'a Bytes, value: Option<&'a Bytes>) {
        let (number, cell) = self.names.cell_of(key, value);
        self.need(number, Need::Is(cell), false);
    }

    /// An item of a transaction that was done, and what it was told if that is known.
    fn item(&mut self, item: &'a Item, told: Option<&'a ItemOutcome>) {
        match item {
            Item::Check { key, holds } => self.condition(key, holds, true, true),
            Item::Get { key } => {
                if let Some(ItemOutcome::Value(value)) = told {
                    self.found(key, value.as_ref());
                }
            }
            Item::Put { key, value, .. } => self.write(key, Some(value)),
            Item::Delete { key } => {
                if let Some(ItemOutcome::Deleted { existed }) = told {
                    self.condition(key, &Condition::Present, *existed, false);
                }
                self.write(key, None);
            }
            Item::Change { key, change: Change::PutIf { exists, value, .. } } => {
                let is_done = matches!(told, Some(ItemOutcome::Changed(_)));
                self.condition(key, &Condition::Present, *exists == is_done, false);
                if is_done {
                    self.write(key, Some(value));
                }
            }
            Item::Change { .. }
            | Item::Expire { .. }
            | Item::Lifetime { .. }
            | Item::Copy { .. } => {
                unreachable!("it is known before that it cannot be judged")
            }
        }
    }

    /// What item `at` checks did not hold, and nothing was changed. What the items before it have
    /// written was there for it alone.
    fn unmet(&mut self, items: &'a [Item], at: usize) {
        for item in items[..at].iter().filter(|item| item.is_write()) {
            self.item(item, None);
        }
        if let Item::Check { key, holds } = &items[at] {
            self.condition(key, holds, false, false);
        }
        self.own.clear();
    }

    fn operation(&mut self, entry: &'a Entry) {
        match (entry.operation(), entry.completion()) {
            (Operation::Get { key, .. }, Completion::Value(value)) => {
                self.found(key, value.as_ref());
            }
            (Operation::Put { key, value, .. }, _) => self.write(key, Some(value)),
            // Whether a delete alone saw a value is not judged: see `Outcome::Deleted`.
            (Operation::Delete { key, .. }, _) => self.write(key, None),
            (Operation::Transact { items, .. }, Completion::Transacted(told)) => {
                items.iter().zip(told).for_each(|(item, told)| self.item(item, Some(told)));
            }
            (Operation::Transact { items, .. }, Completion::Unmet { item }) => {
                self.unmet(items, *item);
            }
            (Operation::Transact { items, .. }, _) => {
                items.iter().for_each(|item| self.item(item, None));
            }
            (
                Operation::Get { .. }
                | Operation::Scan { .. }
                | Operation::Tree(_)
                | Operation::HowEnded { .. },
                _,
            ) => {}
        }
    }
}

/// What an operation of a history needs and leaves; nothing if it says nothing. One that was torn
/// is as many as it writes keys, which need nothing of each other.
pub(super) fn of<'a>(entry: &'a Entry, number: u32, names: &mut Names<'a>) -> Vec<Step> {
    let whole = whole(entry, number, names);
    if !entry.is_torn {
        return whole.into_iter().collect();
    }
    let part = |step: &Step, (key, cell): (u32, Cell)| Step {
        needs: Vec::new(),
        writes: Vec::from([cell]),
        keys: Vec::from([key]),
        ..step.clone()
    };
    whole.iter().flat_map(|step| step.written().map(|of_key| part(step, of_key))).collect()
}

fn whole<'a>(entry: &'a Entry, number: u32, names: &mut Names<'a>) -> Option<Step> {
    let is_open = *entry.completion() == Completion::Unknown;
    if *entry.completion() == Completion::Refused || (is_open && !entry.operation().is_write()) {
        return None;
    }
    let (needs, own) = (Vec::new(), BTreeMap::new());
    let mut builder = Builder { names, needs, own, is_impossible: false };
    builder.operation(entry);
    let Builder { needs, own, is_impossible, .. } = builder;
    let says_something = is_impossible || !(needs.is_empty() && own.is_empty());
    // What cannot have happened did not, if nobody was told that it did.
    let has_happened = !(is_open && is_impossible);
    (says_something && has_happened).then(|| Step {
        needs,
        keys: own.keys().copied().collect(),
        writes: own.into_values().collect(),
        began: entry.began,
        ended: if is_open { NEVER } else { entry.ended },
        entry: number,
        is_impossible,
    })
}
