//! Whether some order of steps explains them all: the search of [`crate::search::orders`] for a map
//! in place of a register, over the same list of beginnings and ends and the same memory of states.
//!
//! A step may be taken when none that is still on the list ended before it began, and the map is as
//! it needs. What keeps an order if there is one, and makes the search short:
//!
//! - A step that writes nothing and may be taken is taken at once.
//! - Nothing is overwritten that a remaining step needs and no remaining step writes again.
//! - A step of unknown outcome need not be taken. It is tried after all others, and only if it
//!   leaves something that a remaining one may need.

use super::open;
use super::step::{Cell, Need, Step};
use crate::search::memo::Memo;
use crate::search::orders::Finding;
use crate::search::timeline::{END, Event, Timeline};
use alloc::vec::Vec;

/// A step that can be taken next: of the known ones, or of the open ones.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Known(u32),
    Open(u32),
}

/// A point to come back to: the choices left to try are the tail of the list of choices.
struct Frame {
    trail: usize,
    choices: usize,
    tried: usize,
}

/// What was done, to be undone in reverse: the step, and how many overwritten cells there were.
struct Done {
    choice: Choice,
    overwritten: usize,
}

enum Advance {
    Finished,
    Stuck,
    Moved,
}

/// The search; its room is kept from one part to the next.
#[derive(Default)]
pub(super) struct Search {
    /// Steps that happened, in the order they began.
    known: Vec<Step>,
    /// Steps that may have.
    open: Vec<Step>,
    is_used: Vec<u64>,
    timeline: Timeline,
    /// What each key has.
    map: Vec<Cell>,
    /// Per cell: how many remaining known steps need it, and how many remaining steps write it.
    readers: Vec<u32>,
    writers: Vec<u32>,
    /// Per cell: how many remaining steps, open ones too, need it, and how many need another one.
    seekers: Vec<u32>,
    avoiders: Vec<u32>,
    choices: Vec<Choice>,
    frames: Vec<Frame>,
    trail: Vec<Done>,
    overwritten: Vec<Cell>,
    packed: Vec<u64>,
    memo: Memo,
    steps: u64,
}

impl Search {
    /// Searches an order of these steps, which are sorted by their beginnings; each of so many keys
    /// begins with the cell of its own number. `steps_max` bounds how often a step is looked at.
    pub fn run(&mut self, steps: &[Step], keys: usize, cells: usize, steps_max: u64) -> Finding {
        self.steps = 0;
        if steps.iter().any(|step| step.is_impossible) {
            return Finding::Contradiction;
        }
        self.prepare(open::sift(steps), keys, cells);
        // Keys begin with the first cells.
        if (keys..cells).any(|cell| self.readers[cell] > 0 && self.writers[cell] == 0) {
            return Finding::Contradiction;
        }
        loop {
            if self.steps > steps_max {
                return Finding::CutOff;
            }
            match self.advance() {
                Advance::Finished => return Finding::Explained,
                Advance::Stuck if !self.go_back() => return Finding::Contradiction,
                Advance::Stuck | Advance::Moved => {}
            }
        }
    }

    /// How many steps were looked at by the last search.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn prepare(&mut self, steps: Vec<Step>, keys: usize, cells: usize) {
        (self.open, self.known) = steps.into_iter().partition(Step::is_open);
        self.timeline.fill(self.known.iter().map(|step| (step.began, step.ended)));
        self.map.clear();
        self.map.extend((0u32..).take(keys));
        self.is_used.clear();
        self.is_used.resize(self.open.len().div_ceil(64), 0);
        let Search { readers, writers, seekers, avoiders, .. } = self;
        for counts in [readers, writers, seekers, avoiders] {
            counts.clear();
            counts.resize(cells, 0);
        }
        for at in 0..self.known.len() + self.open.len() {
            let choice = match at.checked_sub(self.known.len()) {
                None => Choice::Known(at as u32),
                Some(at) => Choice::Open(at as u32),
            };
            self.count(choice, 1);
        }
        self.memo.clear();
        self.frames.clear();
        self.choices.clear();
        self.trail.clear();
        self.overwritten.clear();
    }

    /// Takes what can be taken without a choice, and then the best choice.
    fn advance(&mut self) -> Advance {
        let choices = self.choices.len();
        let Some(last) = self.gather() else { return Advance::Finished };
        if self.choices.len() == choices || !self.is_new(last) {
            self.choices.truncate(choices);
            return Advance::Stuck;
        }
        self.frames.push(Frame { trail: self.trail.len(), choices, tried: choices + 1 });
        self.take(self.choices[choices]);
        Advance::Moved
    }

    /// Takes all that writes nothing and may be taken, and lists the rest that may be: known steps
    /// by their ends, then open ones. Returns whose end holds back the rest of the list; nothing if
    /// the list is empty.
    fn gather(&mut self) -> Option<u32> {
        let choices = self.choices.len();
        let mut node = self.timeline.first();
        let last = loop {
            if node == END {
                return None;
            }
            self.steps += 1;
            match self.timeline.event(node) {
                Event::End(index) => break index,
                Event::Begin(index) if self.may_take(&self.known[index as usize]) => {
                    if self.known[index as usize].writes.is_empty() {
                        self.take(Choice::Known(index));
                        // Its end may have been what held back the rest.
                        self.choices.truncate(choices);
                        node = self.timeline.first();
                        continue;
                    }
                    self.choices.push(Choice::Known(index));
                }
                Event::Begin(_) => {}
            }
            node = self.timeline.after(node);
        };
        let Search { known, choices: all, .. } = self;
        all[choices..].sort_by_key(|choice| match choice {
            Choice::Known(index) => known[*index as usize].ended,
            Choice::Open(_) => unreachable!("they come later"),
        });
        let held_back_at = self.known[last as usize].ended;
        for (index, step) in (0u32..).zip(&self.open) {
            self.steps += 1;
            let is_used = self.is_used[index as usize / 64] & 1 << (index % 64) != 0;
            let has_begun = step.began < held_back_at;
            if !is_used && has_begun && self.is_wanted(step) && self.may_take(step) {
                self.choices.push(Choice::Open(index));
            }
        }
        Some(last)
    }

    /// Whether the map is as a step needs, and nothing is lost with what it overwrites.
    fn may_take(&self, step: &Step) -> bool {
        let has = |key: u32| self.map[key as usize];
        let is_met = step.needs.iter().all(|needed| needed.need.is_met(has(needed.key)));
        is_met && step.written().all(|(key, cell)| has(key) == cell || self.may_go(has(key), step))
    }

    /// Whether what a key has may be overwritten by a step: nobody else needs it, or somebody
    /// writes it again.
    fn may_go(&self, cell: Cell, by: &Step) -> bool {
        let own = by.needs.iter().filter(|needed| needed.need == Need::Is(cell)).count();
        let own = if by.is_open() { 0 } else { own };
        self.readers[cell as usize] as usize == own || self.writers[cell as usize] > 0
    }

    /// Whether a remaining step may find something as it needs it only because an open step is
    /// taken now: what the step leaves, or no longer what a key has.
    fn is_wanted(&self, step: &Step) -> bool {
        step.written().any(|(key, cell)| {
            let has = self.map[key as usize];
            has != cell && (self.seekers[cell as usize] > 0 || self.avoiders[has as usize] > 0)
        })
    }

    /// Counts a step among those that remain, or by -1 no longer.
    fn count(&mut self, choice: Choice, by: i32) {
        let (step, is_known) = match choice {
            Choice::Known(index) => (&self.known[index as usize], true),
            Choice::Open(index) => (&self.open[index as usize], false),
        };
        let add =
            |count: &mut u32| *count = count.checked_add_signed(by).expect("a step is taken once");
        for needed in &step.needs {
            match needed.need {
                Need::Is(cell) => {
                    add(&mut self.seekers[cell as usize]);
                    if is_known {
                        add(&mut self.readers[cell as usize]);
                    }
                }
                Need::IsNot(cell) => add(&mut self.avoiders[cell as usize]),
            }
        }
        step.writes.iter().for_each(|cell| add(&mut self.writers[*cell as usize]));
    }

    /// Whether this state was never met before. `last` holds back the rest of the list.
    fn is_new(&mut self, last: u32) -> bool {
        self.packed.clear();
        self.packed.extend_from_slice(&self.is_used);
        let pair =
            |pair: &[Cell]| u64::from(pair[0]) << 32 | u64::from(pair.get(1).copied().unwrap_or(0));
        self.packed.extend(self.map.chunks(2).map(pair));
        let (word, taken) = self.timeline.window(last);
        self.memo.insert(0, word, &self.packed, taken)
    }

    fn take(&mut self, choice: Choice) {
        self.trail.push(Done { choice, overwritten: self.overwritten.len() });
        let step = match choice {
            Choice::Known(index) => {
                self.timeline.take(index);
                &self.known[index as usize]
            }
            Choice::Open(index) => {
                self.is_used[index as usize / 64] |= 1 << (index % 64);
                &self.open[index as usize]
            }
        };
        for (key, cell) in step.written() {
            self.overwritten.push(core::mem::replace(&mut self.map[key as usize], cell));
        }
        self.count(choice, -1);
    }

    /// Goes back to the last point with a choice left and makes it; false when there is none.
    fn go_back(&mut self) -> bool {
        while let Some(frame) = self.frames.last_mut() {
            let (trail, tried) = (frame.trail, frame.tried);
            frame.tried += 1;
            if tried < self.choices.len() {
                self.undo(trail);
                self.take(self.choices[tried]);
                return true;
            }
            self.choices.truncate(frame.choices);
            self.frames.pop();
        }
        false
    }

    fn undo(&mut self, trail: usize) {
        while self.trail.len() > trail {
            let Some(Done { choice, overwritten }) = self.trail.pop() else { return };
            let step = match choice {
                Choice::Known(index) => {
                    self.timeline.put_back(index);
                    &self.known[index as usize]
                }
                Choice::Open(index) => {
                    self.is_used[index as usize / 64] &= !(1 << (index % 64));
                    &self.open[index as usize]
                }
            };
            let before = self.overwritten.drain(overwritten..);
            for (key, before) in step.keys.iter().zip(before) {
                self.map[*key as usize] = before;
            }
            self.count(choice, 1);
        }
    }
}
