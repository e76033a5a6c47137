//! What stands between `MULTI` and `EXEC`: commands that become one operation over several keys.

use super::commands::Plan;
use super::delay::Delay;
use super::error::{self, CommandError};
use super::many::Many;
use super::reply::CommandReply;
use super::single::{MISMATCH, Single};
use super::watched::Watched;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use quorate_kernel::limits::{COMMAND_BYTES_MAX, TRANSACTION_ITEMS_MAX};
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::time::WallTime;
use quorate_kernel::transaction::{Item, check_bounds};

/// A command of a transaction: what is made of what its items are told.
#[derive(Debug)]
enum Part {
    /// Nothing: the reply is known.
    Known(CommandReply),
    /// Of one item, which is done as an operation on one key.
    Single(Single),
    /// Of so many items, which are a transaction by themselves.
    Several(Single, usize),
    /// Of one item for each of its keys.
    Many(Many),
}

/// The commands that a connection has sent since `MULTI`.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The number of the keyspace that the connection worked on before.
    begun_in: usize,
    /// That of the keyspace that its items are of, if there are any.
    keyspace: Option<usize>,
    items: Vec<Item>,
    /// Of those whose ends count from when they were queued. They count from `EXEC` on.
    delays: Vec<Delay>,
    parts: Vec<Part>,
    bytes: usize,
}

impl Queue {
    /// One without commands, of a connection that works on this keyspace.
    pub(crate) fn new(begun_in: usize) -> Queue {
        let (items, parts) = (Vec::new(), Vec::new());
        Queue { begun_in, keyspace: None, items, delays: Vec::new(), parts, bytes: 0 }
    }

    /// The keyspace that the connection worked on before.
    pub(crate) fn begun_in(&self) -> usize {
        self.begun_in
    }

    /// The keyspace that its items are of, if there are any.
    pub(crate) fn keyspace(&self) -> Option<usize> {
        self.keyspace
    }

    /// How many commands there are.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// How many bytes of input they keep alive.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a command of so many bytes on a keyspace; `name` is what an error calls it, and `since`
    /// the moment from which its times count, if they do from one.
    pub(crate) fn push(
        &mut self,
        name: &str,
        (plan, since): (Plan, Option<WallTime>),
        bytes: usize,
        keyspace: usize,
    ) -> Result<(), CommandError> {
        let before = self.items.len();
        let cannot = || CommandError::NotInMulti { command: name.to_ascii_uppercase() };
        let part = match plan {
            Plan::Now(answer) => Part::Known(answer),
            Plan::One(single, Operation::Transact { items, .. }) => {
                // If a check did not hold, none of the other commands would be done.
                if items.iter().any(|item| matches!(item, Item::Check { .. })) {
                    return Err(cannot());
                }
                let count = items.len();
                self.items.extend(items);
                Part::Several(single, count)
            }
            Plan::One(single, operation) => {
                self.items.push(Item::of(operation).ok_or_else(cannot)?);
                Part::Single(single)
            }
            Plan::Many(mut many) => {
                while let Some((_, operation)) = many.issue() {
                    self.items.push(Item::of(operation).ok_or_else(cannot)?);
                }
                Part::Many(many)
            }
            Plan::Pages(_) | Plan::Flush(_) | Plan::Transact(..) => return Err(cannot()),
        };
        if self.items.len() > before && *self.keyspace.get_or_insert(keyspace) != keyspace {
            return Err(CommandError::Elsewhere { what: "the keys of earlier commands" });
        }
        let places = before..self.items.len();
        let delay = |since| Delay { since, items: core::iter::once(places).collect() };
        self.delays.extend(since.map(delay));
        self.bytes += bytes;
        self.parts.push(part);
        let (count, limit) = (self.items.len().max(self.parts.len()), TRANSACTION_ITEMS_MAX);
        if count > limit {
            return Err(Refusal::TooMany { count, limit }.into());
        }
        if self.bytes > COMMAND_BYTES_MAX {
            let (what, length, limit) = ("transaction", self.bytes, COMMAND_BYTES_MAX);
            return Err(Refusal::TooLarge { what, length, limit }.into());
        }
        Ok(())
    }

    /// What `EXEC` does in a keyspace whose values have at most so many bytes, if what is watched
    /// has not changed; the connection works on the one that is chosen then.
    pub(crate) fn plan(
        self,
        watched: Watched,
        value_bytes_max: usize,
        (keyspace, chosen): (usize, usize),
        now: WallTime,
    ) -> Result<Plan, CommandError> {
        let Queue { begun_in, mut items, delays, parts, bytes, .. } = self;
        delays.iter().for_each(|delay| delay.postpone(&mut items, now));
        let (checks, bytes) = (watched.len(), bytes + watched.bytes());
        let relative = delays.into_iter().flat_map(|delay| delay.items);
        let relative = relative.map(|places| places.start + checks..places.end + checks).collect();
        items.splice(0..0, watched.checks());
        check_bounds(&items, value_bytes_max)?;
        let chosen = Some(chosen).filter(|chosen| *chosen != begun_in);
        let count = items.len();
        let is_alone = false;
        let mut transaction =
            Transaction { parts, count, checks, relative, bytes, keyspace, chosen, is_alone };
        if items.is_empty() {
            return Ok(Plan::Now(transaction.answer(Outcome::Transacted(Vec::new()), now)));
        }
        let operation = Operation::Transact { items, name: None };
        Ok(Plan::Transact(Box::new(transaction), operation))
    }
}

/// A transaction on its way.
#[derive(Debug)]
pub(crate) struct Transaction {
    parts: Vec<Part>,
    /// How many items it has, and how many of them, the first ones, check what is watched.
    count: usize,
    checks: usize,
    /// Which of its items have ends that count from when it is begun.
    relative: Vec<Range<usize>>,
    bytes: usize,
    keyspace: usize,
    chosen: Option<usize>,
    /// It is one command, and its reply is that of the command.
    is_alone: bool,
}

impl Transaction {
    /// A command on several keys of a keyspace, done as one operation; `name` is what an error
    /// calls it. What it holds is counted with the command.
    pub(crate) fn of_one_command(
        name: &str,
        many: Many,
        value_bytes_max: usize,
        keyspace: usize,
    ) -> Result<Plan, CommandError> {
        let (count, limit) = (many.total(), TRANSACTION_ITEMS_MAX);
        if count > limit {
            return Err(Refusal::TooMany { count, limit }.into());
        }
        let mut queue = Queue::new(keyspace);
        queue.push(name, (Plan::Many(many), None), 0, keyspace)?;
        // No command on many keys has times.
        let (where_to, now) = ((keyspace, keyspace), WallTime::default());
        let mut plan = queue.plan(Watched::default(), value_bytes_max, where_to, now)?;
        if let Plan::Transact(transaction, _) = &mut plan {
            transaction.is_alone = true;
        }
        Ok(plan)
    }

    /// How many bytes of input it keeps alive.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What counts from now on, unless it has to wait.
    pub(crate) fn take_delay(&mut self, now: WallTime) -> Option<Delay> {
        let items = core::mem::take(&mut self.relative);
        (!items.is_empty()).then_some(Delay { since: now, items })
    }

    /// The number of the keyspace that it is of.
    pub(crate) fn keyspace(&self) -> usize {
        self.keyspace
    }

    /// The keyspace that the connection works on if it is done, where that is another one.
    pub(crate) fn chosen(&self) -> Option<usize> {
        self.chosen
    }

    /// The reply to the outcome: that of each command, or no list if a key that is watched has
    /// another value.
    pub(crate) fn answer(&mut self, outcome: Outcome, now: WallTime) -> CommandReply {
        let told = match outcome {
            Outcome::Transacted(told) if told.len() == self.count => told,
            Outcome::Refused(Refusal::Unmet { item }) if item < self.checks => {
                return CommandReply::NoList;
            }
            Outcome::Refused(refusal) => return CommandReply::Error(error::refusal(&refusal)),
            _ => return CommandReply::Error(String::from(MISMATCH)),
        };
        let mut told = told.into_iter().skip(self.checks);
        let mut next = || told.next().expect("each item is told something");
        let answer = |part| match part {
            Part::Known(answer) => answer,
            Part::Single(single) => single.answer(next().into(), now),
            Part::Several(single, count) => {
                let told = (0..count).map(|_| next()).collect();
                single.answer(Outcome::Transacted(told), now)
            }
            Part::Many(mut many) => {
                for index in 0..many.total() {
                    many.on_outcome(index as u32, next().into());
                }
                many.finish()
            }
        };
        let mut replies = self.parts.drain(..).map(answer);
        match self.is_alone {
            true => replies.next().expect("it is of one command"),
            false => CommandReply::List(replies.collect()),
        }
    }
}
