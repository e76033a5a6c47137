//! Writes that callers numbered: what became of them, so that one sent again is not done twice.
//!
//! A register that is written twice can go back to an old value: the second time may come after
//! somebody else's write. So a request that is sent again is only told what became of the first,
//! and done only if the first surely never arrived. What is remembered is bounded in number and
//! age; how far back memory reaches is known, and a request from before that is told so.
//!
//! Age is counted in ticks of the core thread and not in time: a process that was frozen forgets
//! nothing for it, while what was sent to it waits in its sockets.

use bytes::Bytes;
use quorate_kernel::ids::{LaneId, Ticket};
use quorate_kernel::limits::TRANSACTION_BYTES_MAX;
use quorate_kernel::operation::Outcome;
use quorate_kernel::transaction::ItemOutcome;
use quorate_kernel::tree::{Acl, Failure, Id, Told, TreeReply};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// The most requests remembered.
const REQUESTS_MAX: usize = 65_536;
/// For how many ticks a request is remembered: ten minutes of the core thread's work.
const TICKS_MAX: u64 = 2_400;
/// The most bytes of what transactions and writes of trees were told.
const BYTES_MAX: usize = 2 * TRANSACTION_BYTES_MAX;

/// A request: the lane of its keyspace, which no other keyspace ever has, and the 16 bytes that its
/// sender drew.
pub(crate) type Name = (LaneId, [u8; 16]);

/// What is known of a request that arrives.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It is new: it was noted, and is to be done.
    New,
    /// It is being done, under this ticket.
    InHand(Ticket),
    /// It was done.
    Done(Outcome),
    /// Another request had this name.
    Reused,
    /// It was sent before, and may have been done and forgotten.
    Forgotten,
}

#[derive(Debug)]
struct Entry {
    /// A hash of what is asked.
    digest: u64,
    /// The number of its place in the queue.
    number: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    InHand(Ticket),
    Done(Outcome),
}

impl State {
    fn size(&self) -> usize {
        match self {
            State::InHand(_) => 0,
            State::Done(outcome) => size(outcome),
        }
    }
}

/// The requests of the last minutes.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    entries: HashMap<Name, Entry>,
    /// All of them, and some that are no longer there, in the order of their arrival.
    queue: VecDeque<(u64, u64, Name)>,
    tick: u64,
    last_number: u64,
    /// The tick in which the newest request that was forgotten had arrived.
    forgotten: Option<u64>,
    /// How many bytes of what transactions and writes of trees were told are remembered.
    bytes: usize,
}

/// How many bytes an outcome takes that can take many.
fn size(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Transacted(items) => {
            items.iter().map(|item| size_of::<ItemOutcome>() + item.bytes()).sum()
        }
        Outcome::Tree(reply) => size_of::<TreeReply>() + reply.told.as_ref().map_or(0, held),
        _ => 0,
    }
}

/// How many bytes what a tree tells holds beside itself.
fn held(told: &Told) -> usize {
    let of_id = |it: &Id| it.scheme.len() + it.id.len();
    let of_one = |it: &Result<Told, Failure>| {
        size_of::<Result<Told, Failure>>() + it.as_ref().map_or(0, held)
    };
    match told {
        Told::Done | Told::Stat(_) | Told::Count(_) => 0,
        Told::Created { path, .. } => path.len(),
        Told::Data { data, .. } => data.as_ref().map_or(0, Bytes::len),
        Told::Children { names: texts, .. } | Told::Paths(texts) => {
            texts.iter().map(|text| size_of::<String>() + text.len()).sum()
        }
        Told::Acl { acl, .. } => acl.iter().map(|it| size_of::<Acl>() + of_id(&it.id)).sum(),
        Told::Ids(ids) => ids.iter().map(|id| size_of::<Id>() + of_id(id)).sum(),
        Told::Many(all) => all.iter().map(of_one).sum(),
    }
}

impl Remembered {
    /// One more tick of at least this length has passed: forgets what is too old.
    pub fn tick(&mut self) {
        self.tick += 1;
        while let Some(&(tick, ..)) = self.queue.front()
            && (self.tick - tick > TICKS_MAX || self.queue.len() > REQUESTS_MAX)
        {
            self.forget_first();
        }
    }

    /// A request arrives, to be done under `ticket` if it is new. `age` is how long ago it was
    /// first sent, if this is not the first time; `tick` is the least length of a tick.
    pub fn arrive(
        &mut self,
        name: Name,
        digest: u64,
        ticket: Ticket,
        age: Option<Duration>,
        tick: Duration,
    ) -> Known {
        if let Some(entry) = self.entries.get(&name) {
            return match &entry.state {
                _ if entry.digest != digest => Known::Reused,
                State::InHand(ticket) => Known::InHand(*ticket),
                State::Done(outcome) => Known::Done(outcome.clone()),
            };
        }
        if let Some(age) = age
            && let Some(forgotten) = self.forgotten
        {
            let ticks = age.as_nanos() / tick.as_nanos() + 1;
            let first = u128::from(self.tick).saturating_sub(ticks);
            if first <= u128::from(forgotten) {
                return Known::Forgotten;
            }
        }
        if self.queue.len() >= REQUESTS_MAX {
            self.forget_first();
        }
        self.last_number += 1;
        self.queue.push_back((self.tick, self.last_number, name));
        let entry = Entry { digest, number: self.last_number, state: State::InHand(ticket) };
        self.entries.insert(name, entry);
        Known::New
    }

    fn forget_first(&mut self) {
        if let Some((tick, number, name)) = self.queue.pop_front()
            && self.entries.get(&name).is_some_and(|entry| entry.number == number)
        {
            self.bytes -= self.entries.remove(&name).map_or(0, |entry| entry.state.size());
            self.forgotten = Some(tick);
        }
    }

    /// A request has ended. A refusal is remembered too: whoever was told that nothing was changed
    /// may go on, and an earlier sending that is still on its way must not be done then.
    pub fn end(&mut self, name: Name, outcome: &Outcome) {
        if let Some(entry) = self.entries.get_mut(&name) {
            let before = std::mem::replace(&mut entry.state, State::Done(outcome.clone()));
            self.bytes = self.bytes - before.size() + size(outcome);
        }
        while self.bytes > BYTES_MAX {
            self.forget_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::operation::Refusal;
    use quorate_kernel::tree::{Stat, Zxid};

    const TICK: Duration = Duration::from_millis(250);

    fn name(number: u128) -> Name {
        (LaneId(4), number.to_be_bytes())
    }

    impl Remembered {
        fn first(&mut self, number: u128) -> Known {
            self.arrive(name(number), 7, Ticket(3), None, TICK)
        }

        fn again(&mut self, number: u128, age: Duration) -> Known {
            self.arrive(name(number), 7, Ticket(3), Some(age), TICK)
        }
    }

    #[test]
    fn a_request_is_done_once() {
        let mut all = Remembered::default();
        assert_eq!(all.first(1), Known::New);
        assert_eq!(all.again(1, TICK), Known::InHand(Ticket(3)));
        all.end(name(1), &Outcome::deleted(true));
        assert_eq!(all.again(1, TICK), Known::Done(Outcome::deleted(true)));
        assert_eq!(all.first(1), Known::Done(Outcome::deleted(true)));
        let other = all.arrive(name(1), 8, Ticket(3), None, TICK);
        assert_eq!(other, Known::Reused, "it asks something else");
        assert_eq!(
            all.arrive((LaneId(5), name(1).1), 8, Ticket(3), None, TICK),
            Known::New,
            "another keyspace"
        );
    }

    #[test]
    fn what_was_refused_or_is_unknown_stays_so() {
        let refusals = [Refusal::NoQuorum { reached: 1, needed: 2 }, Refusal::OutcomeUnknown];
        for refusal in refusals {
            let (mut all, refused) = (Remembered::default(), Outcome::Refused(refusal));
            assert_eq!(all.again(1, TICK), Known::New);
            all.end(name(1), &refused);
            // The first sending arrives after the second.
            assert_eq!(all.first(1), Known::Done(refused));
        }
    }

    #[test]
    fn one_that_never_arrived_is_done_if_memory_reaches_back_to_it() {
        let mut all = Remembered::default();
        assert_eq!(all.again(1, Duration::from_secs(9_999)), Known::New, "nothing was forgotten");
        for _ in 0..TICKS_MAX / 2 {
            all.tick();
        }
        assert_eq!(all.first(2), Known::New);
        for _ in 0..=TICKS_MAX / 2 {
            all.tick();
        }
        // Request 1 was forgotten, 2 was not; memory reaches back to the first tick.
        let ticks = u32::try_from(TICKS_MAX).expect("small");
        assert_eq!(all.again(1, TICK * (ticks + 1)), Known::Forgotten);
        assert_eq!(all.again(2, TICK * ticks), Known::InHand(Ticket(3)));
        assert_eq!(all.again(3, TICK * ticks), Known::Forgotten);
        assert_eq!(all.again(3, TICK * (ticks - 1)), Known::New);
    }

    #[test]
    fn what_transactions_were_told_is_remembered_within_a_bound() {
        let mut all = Remembered::default();
        let value = Bytes::from(vec![0; BYTES_MAX / 4]);
        let told = Outcome::Transacted(vec![ItemOutcome::Value(Some(value))]);
        for number in 0..4 {
            assert_eq!(all.first(number), Known::New);
            all.end(name(number), &told);
        }
        assert_eq!(all.again(0, TICK), Known::Forgotten, "it is not done again");
        assert_eq!(all.again(3, TICK), Known::Done(told));
        assert!(all.bytes <= BYTES_MAX && all.entries.len() == 3);
        (0..=TICKS_MAX).for_each(|_| all.tick());
        assert_eq!((all.bytes, all.entries.len()), (0, 0));
    }

    #[test]
    fn what_writes_of_trees_were_told_is_remembered_within_the_same_bound() {
        let mut all = Remembered::default();
        let made =
            |bytes: usize| Ok(Told::Created { path: "p".repeat(bytes), stat: Stat::default() });
        let told = |told| Outcome::Tree(Box::new(TreeReply { zxid: Zxid(7), told }));
        let many = told(Ok(Told::Many(vec![made(BYTES_MAX / 8), made(BYTES_MAX / 8)])));
        for (number, outcome) in [(0, &told(made(BYTES_MAX / 4))), (1, &many), (2, &many)] {
            assert_eq!(all.first(number), Known::New);
            all.end(name(number), outcome);
        }
        assert_eq!(all.entries.len(), 3, "they fit");
        assert_eq!(all.first(3), Known::New);
        all.end(name(3), &many);
        assert_eq!(all.again(0, TICK), Known::Forgotten, "it is not done again");
        assert_eq!(all.again(3, TICK), Known::Done(many));
        assert!(all.bytes <= BYTES_MAX && all.entries.len() == 3);
        let items = told(Ok(Told::Many(vec![Err(Failure::NotTried); 1024])));
        assert!(size(&items) >= 1024 * size_of::<Told>(), "each item takes its room");
        (0..=TICKS_MAX).for_each(|_| all.tick());
        assert_eq!((all.bytes, all.entries.len()), (0, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut all = Remembered::default();
        for number in 0..=REQUESTS_MAX as u128 {
            assert_eq!(all.first(number), Known::New);
            all.end(name(number), &Outcome::written());
        }
        assert_eq!((all.entries.len(), all.queue.len()), (REQUESTS_MAX, REQUESTS_MAX));
        assert_eq!(all.again(0, TICK), Known::Forgotten);
        assert_eq!(all.again(1, TICK), Known::Done(Outcome::written()));
    }
}
