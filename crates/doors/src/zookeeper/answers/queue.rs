//! Requests that are not answered, or whose answers wait for earlier ones; and where events go.
//!
//! Answers leave in the order of the requests, in whatever order the engine gives them. Of an event
//! two things must hold, in the order in which the engine tells events and outcomes:
//! - **It is before each answer that comes later.** One of these may show the change, and a client
//!   that saw a change and then hears of it would take the event for a second one.
//! - **It is behind the answer that began to follow its node.** A client notes what it follows when
//!   it reads that answer: an event that comes before belongs to nothing, and is lost for ever.
//!
//! So an event leaves at once, unless an answer that has come, and that may have begun to follow
//! its node, still waits for earlier ones. Then it leaves right behind the last of these. The
//! earlier ones come later than the event and leave before it, and yet none of them shows its
//! change: what a session asks is done in the order in which it is asked, so they were done before
//! what they hold back, and that was done and told before the change.
//!
//! An answer that came before an event may leave behind it: it shows an older state than the event
//! tells of, and was asked before the client could know of that.

use super::follows::Follows;
use super::form::Form;
use crate::zookeeper::wire::jute::Frame;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use quorate_kernel::mutant;
use quorate_kernel::rope::Rope;
use quorate_kernel::time::Time;

/// How many numbers requests have, before the first one comes again.
const NUMBERS: u32 = 1 << 31;

/// A request that was asked of the engine.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// What the client calls it.
    pub xid: i32,
    /// What its answer looks like.
    pub form: Form,
    /// What it begins to follow.
    pub follows: Follows,
    /// How many bytes its frame has.
    pub bytes: usize,
    /// When it was read.
    pub asked: Time,
}

#[derive(Debug)]
enum Slot {
    Waiting(Waiting),
    Answered {
        frame: Frame,
        /// What was followed from this answer on.
        follows: Follows,
        /// How many bytes the frame of the request had.
        bytes: usize,
        /// Events that leave right behind the answer.
        events: Vec<Frame>,
    },
}

impl Slot {
    /// How many bytes the request takes, and its answer with all that leaves behind it.
    fn bytes(&self) -> (usize, usize) {
        match self {
            Slot::Waiting(waiting) => (waiting.bytes, 0),
            Slot::Answered { frame, bytes, events, .. } => {
                (*bytes, frame.len() + events.iter().map(Frame::len).sum::<usize>())
            }
        }
    }

    fn is_read(&self) -> bool {
        matches!(self, Slot::Waiting(waiting) if waiting.form.is_read())
    }
}

/// The requests in hand, in their order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    slots: VecDeque<Slot>,
    /// The number of the first one.
    front: u32,
    asked_bytes: usize,
    held_bytes: usize,
    reads: usize,
    unanswered: usize,
}

impl Queue {
    /// How many requests there are, of which the first has no answer.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many requests have no answer.
    pub fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Whether all were answered.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many bytes the requests take.
    pub fn asked_bytes(&self) -> usize {
        self.asked_bytes
    }

    /// How many bytes the answers and events take that wait for earlier answers.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// How many requests may have long answers and have none yet.
    pub fn reads(&self) -> usize {
        self.reads
    }

    /// Adds a request that is asked of the engine; its number.
    pub fn push(&mut self, waiting: Waiting) -> u32 {
        let number = (self.front + self.slots.len() as u32) % NUMBERS;
        self.add(Slot::Waiting(waiting));
        number
    }

    /// Adds a request whose answer is known without the engine, or writes that if it is its turn.
    pub fn push_answered(&mut self, frame: Frame, bytes: usize, out: &mut Rope) {
        if self.slots.is_empty() {
            return frame.send(out);
        }
        let follows = Follows::Nothing;
        self.add(Slot::Answered { frame, follows, bytes, events: Vec::new() });
    }

    fn add(&mut self, slot: Slot) {
        let (asked, held) = slot.bytes();
        self.asked_bytes += asked;
        self.held_bytes += held;
        self.reads += usize::from(slot.is_read());
        self.unanswered += usize::from(matches!(slot, Slot::Waiting(_)));
        self.slots.push_back(slot);
    }

    fn remove(&mut self, slot: Slot) -> Slot {
        let (asked, held) = slot.bytes();
        self.asked_bytes -= asked;
        self.held_bytes -= held;
        self.reads -= usize::from(slot.is_read());
        self.unanswered -= usize::from(matches!(slot, Slot::Waiting(_)));
        slot
    }

    fn place(&self, number: u32) -> usize {
        (number.wrapping_sub(self.front) % NUMBERS) as usize
    }

    /// The request of a number, if it has no answer.
    pub fn waiting(&self, number: u32) -> Option<&Waiting> {
        match self.slots.get(self.place(number))? {
            Slot::Waiting(waiting) => Some(waiting),
            Slot::Answered { .. } => None,
        }
    }

    /// Answers a request, and writes what has its turn by that.
    pub fn answer(&mut self, number: u32, frame: Frame, out: &mut Rope) {
        let place = if mutant!("zookeeper_answer_overtakes") { 0 } else { self.place(number) };
        let Some(slot) = self.slots.get_mut(place) else { return };
        let Slot::Waiting(waiting) = slot else { return };
        let is_read = waiting.form.is_read();
        let follows = core::mem::replace(&mut waiting.follows, Follows::Nothing);
        let bytes = waiting.bytes;
        self.held_bytes += frame.len();
        self.reads -= usize::from(is_read);
        self.unanswered -= 1;
        *slot = Slot::Answered { frame, follows, bytes, events: Vec::new() };
        self.flush(out);
    }

    fn flush(&mut self, out: &mut Rope) {
        while let Some(Slot::Answered { .. }) = self.slots.front() {
            let Some(slot) = self.slots.pop_front() else { return };
            self.front = (self.front + 1) % NUMBERS;
            if let Slot::Answered { frame, events, .. } = self.remove(slot) {
                frame.send(out);
                events.into_iter().for_each(|event| event.send(out));
            }
        }
    }

    /// Puts an event about a node where it belongs.
    pub fn tell(&mut self, path: &str, event: Frame, out: &mut Rope) {
        if self.held_bytes == 0 {
            return event.send(out);
        }
        let began = |slot: &&mut Slot| {
            let Slot::Answered { follows, .. } = slot else { return false };
            follows.concerns(path) && !mutant!("zookeeper_event_before_its_watch")
                || mutant!("zookeeper_event_waits")
        };
        match self.slots.iter_mut().rfind(began) {
            Some(Slot::Answered { events, .. }) => {
                self.held_bytes += event.len();
                events.push(event);
            }
            _ => event.send(out),
        }
    }

    /// Gives up a request and all behind it.
    pub fn cut(&mut self, number: u32) {
        let place = self.place(number);
        while self.slots.len() > place {
            let Some(slot) = self.slots.pop_back() else { return };
            self.remove(slot);
        }
    }

    /// Gives up all.
    pub fn clear(&mut self) {
        self.cut(self.front);
    }
}
