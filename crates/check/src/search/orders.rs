//! Whether some order of one key's operations explains them: a search over the writes, where what
//! can be said without one ([`Sources`], [`Zones`]) does not decide.
//!
//! The operations are taken off a list of their beginnings and ends one by one, in an order that
//! must respect time: an operation may be taken when none that is still on the list ended before
//! it began (Wing and Gong, "Testing and verifying concurrent objects", with the cache of visited
//! states of Lowe, "Testing for linearizability"). That a register is read and written, and
//! nothing else, allows these short cuts, each of which keeps an order if there is one:
//!
//! - A read that may be taken and returned the present value is taken at once: it changes nothing.
//! - Of several writes of one value that may be taken, only the one that ends first is tried. In
//!   any order the others can change places with it.
//! - A write whose value no remaining read returned is **dead**: it may go directly before any
//!   other write. So all dead writes that may be taken go first whenever another write is chosen;
//!   alone they are tried only when one of them holds back the rest of the list.
//! - A write of unknown outcome never has to be taken. It is tried only when a read of its value
//!   could follow at once and no acknowledged write of that value could do instead; of equal ones
//!   the earliest is used.
//! - The present value is not overwritten while a remaining read needs it that ends before any
//!   remaining write could bring the value back.

use crate::histories::register::{ABSENT, Action, Kind};
use crate::search::memo::Memo;
use crate::search::sources::Sources;
use crate::search::timeline::{END, Event, Timeline};
use crate::search::zones::Zones;
use alloc::vec::Vec;

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// There is an order that explains every operation.
    Explained,
    /// There is none.
    Contradiction,
    /// The search was cut off before it knew.
    CutOff,
}

/// The number that stands for any present value that no remaining read returns.
const DEAD: u32 = u32::MAX;

/// What remains to be taken for one value.
#[derive(Clone, Copy, Default)]
struct Remaining {
    reads: u32,
    /// Acknowledged writes.
    writes: u32,
    /// Before this place in the list of reads by value and end, all of the value are taken.
    read_next: u32,
    /// Before this place in the list of writes by value and beginning, all of the value are taken.
    write_next: u32,
    /// The open writes of the value are `open[open_next..open_end]`, the used ones before that.
    open_next: u32,
    open_end: u32,
    /// Marks the choice made for this value in the gathering of this number.
    gathering: u32,
    choice: u32,
}

#[derive(Clone, Copy)]
enum Choice {
    /// Take this acknowledged write, after all dead ones.
    Write(u32),
    /// Use an open write of this value, after all dead writes.
    Open(u32),
    /// Take the dead writes only.
    Dead,
}

/// A point to come back to: the choices left to try are the tail of the list of choices.
struct Frame {
    trail: usize,
    value: u32,
    choices: usize,
    tried: usize,
}

/// What was done, to be undone in reverse.
#[derive(Clone, Copy)]
enum Done {
    Taken(u32),
    Opened(u32),
}

enum Advance {
    Finished,
    Stuck,
    Moved,
}

/// The search; its room is kept from one register to the next.
#[derive(Default)]
pub(crate) struct Search {
    sources: Sources,
    zones: Zones,
    /// Reads and acknowledged writes in the order they began.
    known: Vec<Action>,
    timeline: Timeline,
    /// When each useful open write began, sorted by value and then by beginning.
    open: Vec<(u32, u32)>,
    open_used: Vec<u64>,
    /// Reads sorted by value and end, and acknowledged writes sorted by value and beginning.
    sorted: Vec<(u32, u32, u32)>,
    /// Per known operation its place in that list.
    place: Vec<u32>,
    remaining: Vec<Remaining>,
    value: u32,
    writes_enabled: Vec<u32>,
    reads_enabled: Vec<u32>,
    gathering: u32,
    ranked: Vec<(bool, u32, Choice)>,
    choices: Vec<Choice>,
    frames: Vec<Frame>,
    trail: Vec<Done>,
    memo: Memo,
    steps: u64,
}

impl Search {
    /// Judges the actions of one register, which are sorted by their beginnings and name values
    /// below `values`. `steps_max` bounds how often the search looks at an operation.
    pub fn run(&mut self, actions: &[Action], values: u32, steps_max: u64) -> Finding {
        self.steps = 0;
        let mut sources = core::mem::take(&mut self.sources);
        let answer = match sources.tell_apart(actions, values) {
            None => Finding::Contradiction,
            Some((actions, values)) => match self.zones.judge(actions, values) {
                Some(answer) => answer,
                None => self.explore(actions, values, steps_max),
            },
        };
        self.sources = sources;
        answer
    }

    /// How many steps the last search took.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The search itself, without the shortcuts that come before it.
    pub fn explore(&mut self, actions: &[Action], values: u32, steps_max: u64) -> Finding {
        self.prepare(actions, values);
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

    fn prepare(&mut self, actions: &[Action], values: u32) {
        self.remaining.clear();
        self.remaining.resize(values as usize, Remaining::default());
        self.known.clear();
        self.open.clear();
        for action in actions {
            let remaining = &mut self.remaining[action.value as usize];
            match action.kind {
                Kind::Read => remaining.reads += 1,
                Kind::Write => remaining.writes += 1,
                Kind::Open => self.open.push((action.value, action.began)),
            }
            if action.kind != Kind::Open {
                self.known.push(*action);
            }
        }
        // An open write that nobody saw need not have happened.
        self.open.retain(|&(value, _)| self.remaining[value as usize].reads > 0);
        self.open.sort_unstable();
        for (index, &(value, _)) in (0u32..).zip(&self.open) {
            let remaining = &mut self.remaining[value as usize];
            if remaining.open_end == 0 {
                remaining.open_next = index;
            }
            remaining.open_end = index + 1;
        }
        self.sort_known();
        self.open_used.clear();
        self.open_used.resize(self.open.len().div_ceil(64), 0);
        self.timeline.fill(self.known.iter().map(|action| (action.began, action.ended)));
        self.memo.clear();
        self.frames.clear();
        self.choices.clear();
        self.trail.clear();
        self.value = ABSENT;
        self.gathering = 0;
        self.steps = 0;
    }

    /// Sorts the known operations so that the first read to end and the first write to begin can be
    /// found for each value: all reads, then all writes, each by value.
    fn sort_known(&mut self) {
        self.sorted.clear();
        let values = u32::try_from(self.remaining.len()).expect("values are numbered");
        for (index, action) in (0u32..).zip(&self.known) {
            self.sorted.push(if action.is_write() {
                (values + action.value, action.began, index)
            } else {
                (action.value, action.ended, index)
            });
        }
        self.sorted.sort_unstable();
        self.place.clear();
        self.place.resize(self.known.len(), 0);
        for (place, &(group, _, index)) in self.sorted.iter().enumerate().rev() {
            let place = place as u32;
            self.place[index as usize] = place;
            match group.checked_sub(values) {
                Some(value) => self.remaining[value as usize].write_next = place,
                None => self.remaining[group as usize].read_next = place,
            }
        }
    }

    /// Takes what can be taken without a choice, then makes the next choice.
    fn advance(&mut self) -> Advance {
        let Some(last) = self.take_reads() else { return Advance::Finished };
        if self.is_needed(self.value) {
            return Advance::Stuck;
        }
        self.gather(last);
        let start = self.choices.len();
        self.choices.extend(self.ranked.iter().map(|&(_, _, choice)| choice));
        match self.choices.len() - start {
            0 => Advance::Stuck,
            1 => {
                let only = self.choices.pop().expect("there is one choice");
                self.take(only);
                Advance::Moved
            }
            _ if !self.is_new(last) => {
                self.choices.truncate(start);
                Advance::Stuck
            }
            _ => {
                self.frames.push(Frame {
                    trail: self.trail.len(),
                    value: self.value,
                    choices: start,
                    tried: start + 1,
                });
                self.take(self.choices[start]);
                Advance::Moved
            }
        }
    }

    /// Takes each enabled read of the present value and notes what else is enabled. Returns the
    /// operation whose end holds back the rest of the list; `None` when nothing is left.
    fn take_reads(&mut self) -> Option<u32> {
        self.writes_enabled.clear();
        self.reads_enabled.clear();
        let mut node = self.timeline.first();
        while node != END {
            self.steps += 1;
            match self.timeline.event(node) {
                Event::End(known) => return Some(known),
                Event::Begin(index) => {
                    let action = self.known[index as usize];
                    if action.is_write() {
                        self.writes_enabled.push(index);
                    } else if action.value == self.value {
                        self.take_known(index);
                    } else {
                        self.reads_enabled.push(index);
                    }
                }
            }
            node = self.timeline.after(node);
        }
        None
    }

    /// Whether a value must not be overwritten now: some read of it ends before it could return.
    fn is_needed(&mut self, value: u32) -> bool {
        if value == DEAD || self.remaining[value as usize].reads == 0 {
            return false;
        }
        let remaining = &mut self.remaining[value as usize];
        let skip_taken = |next: &mut u32| {
            while self.timeline.is_taken(self.sorted[*next as usize].2) {
                *next += 1;
            }
            self.sorted[*next as usize].1
        };
        let needed_until = skip_taken(&mut remaining.read_next);
        let has_open = remaining.open_next < remaining.open_end;
        if has_open && self.open[remaining.open_next as usize].1 < needed_until {
            return false;
        }
        remaining.writes == 0 || skip_taken(&mut remaining.write_next) > needed_until
    }

    /// Ranks the choices: first those that a waiting read speaks for, then those that end first.
    fn gather(&mut self, last: u32) {
        self.gathering += 1;
        self.ranked.clear();
        for &index in &self.writes_enabled {
            let Action { value, ended, .. } = self.known[index as usize];
            let remaining = &mut self.remaining[value as usize];
            if remaining.reads == 0 {
                if index == last {
                    self.ranked.push((true, ended, Choice::Dead));
                }
            } else if remaining.gathering != self.gathering {
                remaining.gathering = self.gathering;
                remaining.choice = u32::try_from(self.ranked.len()).expect("few are enabled");
                self.ranked.push((true, ended, Choice::Write(index)));
            } else {
                let ranked = &mut self.ranked[remaining.choice as usize];
                if ended < ranked.1 {
                    *ranked = (true, ended, Choice::Write(index));
                }
            }
        }
        let held_back_at = self.known[last as usize].ended;
        for &index in &self.reads_enabled {
            let Action { value, ended, .. } = self.known[index as usize];
            let remaining = &mut self.remaining[value as usize];
            if remaining.gathering == self.gathering {
                self.ranked[remaining.choice as usize].0 = false;
            } else if remaining.open_next < remaining.open_end
                && self.open[remaining.open_next as usize].1 < held_back_at
            {
                remaining.gathering = self.gathering;
                remaining.choice = u32::try_from(self.ranked.len()).expect("few are enabled");
                self.ranked.push((false, ended, Choice::Open(value)));
            }
        }
        self.ranked.sort_by_key(|&(is_unasked, ended, _)| (is_unasked, ended));
    }

    /// Whether this state was never met before. `last` holds back the rest of the list.
    fn is_new(&mut self, last: u32) -> bool {
        let is_dead = self.value == DEAD || self.remaining[self.value as usize].reads == 0;
        let value = if is_dead { DEAD } else { self.value };
        let (word, taken) = self.timeline.window(last);
        self.memo.insert(value, word, &self.open_used, taken)
    }

    fn take(&mut self, choice: Choice) {
        self.take_dead();
        match choice {
            Choice::Write(index) => {
                self.take_known(index);
                self.value = self.known[index as usize].value;
            }
            Choice::Open(value) => {
                let remaining = &mut self.remaining[value as usize];
                let index = remaining.open_next as usize;
                self.open_used[index / 64] |= 1 << (index % 64);
                remaining.open_next += 1;
                self.trail.push(Done::Opened(value));
                self.value = value;
            }
            Choice::Dead => self.value = DEAD,
        }
    }

    fn take_dead(&mut self) {
        let mut node = self.timeline.first();
        while node != END {
            self.steps += 1;
            let Event::Begin(index) = self.timeline.event(node) else { return };
            let action = self.known[index as usize];
            if action.is_write() && self.remaining[action.value as usize].reads == 0 {
                self.take_known(index);
            }
            node = self.timeline.after(node);
        }
    }

    fn take_known(&mut self, index: u32) {
        let action = &self.known[index as usize];
        let remaining = &mut self.remaining[action.value as usize];
        if action.is_write() {
            remaining.writes -= 1;
        } else {
            remaining.reads -= 1;
        }
        self.timeline.take(index);
        self.trail.push(Done::Taken(index));
    }

    /// Goes back to the last point with a choice left and makes it; false when there is none.
    fn go_back(&mut self) -> bool {
        while let Some(frame) = self.frames.last_mut() {
            let (trail, tried) = (frame.trail, frame.tried);
            self.value = frame.value;
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
        for done in self.trail.drain(trail..).rev() {
            match done {
                Done::Taken(index) => {
                    let action = &self.known[index as usize];
                    let remaining = &mut self.remaining[action.value as usize];
                    let place = self.place[index as usize];
                    if action.is_write() {
                        remaining.writes += 1;
                        remaining.write_next = place.min(remaining.write_next);
                    } else {
                        remaining.reads += 1;
                        remaining.read_next = place.min(remaining.read_next);
                    }
                    self.timeline.put_back(index);
                }
                Done::Opened(value) => {
                    let remaining = &mut self.remaining[value as usize];
                    remaining.open_next -= 1;
                    let index = remaining.open_next as usize;
                    self.open_used[index / 64] &= !(1 << (index % 64));
                }
            }
        }
    }
}
