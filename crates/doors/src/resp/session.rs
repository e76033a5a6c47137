//! One connection: bytes in, operations out, outcomes in, bytes out.
//!
//! Commands wait in a queue until their replies are known and all earlier ones were written. What
//! keeps memory bounded: no command is read while too many, or too many bytes of them, are
//! unanswered, or while the client does not take its replies; and no operation is started that
//! could bring more values than the client may have outstanding.

mod follow;
mod seam;

use super::commands::{self, Cx, Plan};
use super::delay::Delay;
use super::error;
use super::many::Many;
use super::order::Flights;
use super::reply::{CommandReply, Encoder, Protocol};
use super::requests::frame::Command;
use super::requests::parse::Parser;
use super::shared::{Shared, argument_bytes_max, selected};
use super::single::Single;
use super::state::{Client, ReplyMode};
use super::work::Work;
use crate::door::{Connected, Requests};
use crate::host::{Clock, Serving};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use follow::Untold;
use quorate_kernel::ids::LaneId;
use quorate_kernel::limits::{
    CLIENT_OPERATIONS_MAX, CLIENT_QUEUE_BYTES_MAX, CLIENT_READ_BYTES_MAX,
};
use quorate_kernel::mutant;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::probe;
use quorate_kernel::rng::Rng;
use quorate_kernel::rope::Rope;
use quorate_kernel::time::WallTime;

/// How long a value is taken to be before any was read.
const VALUE_BYTES_EXPECTED: usize = 64 * 1024;
/// The most operations in hand at once: one of those that a client may have is kept for its watch.
const OPERATIONS_MAX: usize = CLIENT_OPERATIONS_MAX - 1;

#[derive(Debug)]
struct Pending {
    work: Work,
    lane: LaneId,
    /// How many bytes of input it keeps alive.
    bytes: usize,
    /// How many of its operations have not ended.
    running: u32,
    protocol: Protocol,
    is_silent: bool,
}

/// One connection of a Redis client.
pub struct Session {
    shared: Arc<Shared>,
    serving: Arc<Serving>,
    client: Client,
    rng: Rng,
    parser: Parser,
    pending: VecDeque<Pending>,
    /// The number of the command at the front of the queue.
    front: u32,
    pending_bytes: usize,
    /// Bytes kept by replies that are not at the front yet.
    held: usize,
    flights: Flights,
    /// The last command lists keys once all operations have ended, or what is read behind it
    /// depends on how it ends; none is read until then.
    barrier: bool,
    /// How long the next value is taken to be.
    expected: usize,
    output: Rope,
    /// How many bytes of input were left when no whole command was among them.
    leftover: usize,
    is_draining: bool,
    /// What the client is told when all that was begun is answered.
    farewell: Option<String>,
    /// A watch is in hand.
    follows: bool,
    /// What has happened, and must not be told yet.
    untold: Untold,
}

impl Session {
    /// A new connection. Its seed decides what `RANDOMKEY` draws.
    #[must_use]
    pub fn new(connected: Connected, shared: Arc<Shared>, serving: Arc<Serving>) -> Session {
        let parser = Parser::new(argument_bytes_max(&serving));
        Session {
            shared,
            serving,
            rng: Rng::new(connected.seed),
            client: Client::new(connected),
            parser,
            pending: VecDeque::new(),
            front: 0,
            pending_bytes: 0,
            held: 0,
            flights: Flights::default(),
            barrier: false,
            expected: VALUE_BYTES_EXPECTED,
            output: Rope::default(),
            leftover: 0,
            is_draining: false,
            farewell: None,
            follows: false,
            untold: Untold::default(),
        }
    }

    /// Whether every command read so far was answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// The line of this client in `CLIENT LIST`.
    #[must_use]
    pub fn describe(&self) -> String {
        self.client.describe()
    }

    /// Answers what is arriving with an error and reads nothing more. A command that takes turns is
    /// the last of the queue, so the error must not stand behind it before it has ended.
    fn end_with(&mut self, error: String) {
        self.is_draining = true;
        self.farewell.get_or_insert(error);
        self.part();
    }

    /// Tells the client why it must go, once all that was begun is answered.
    fn part(&mut self) {
        if (self.pending.is_empty() || mutant!("refused_stands_in_line"))
            && let Some(error) = self.farewell.take()
        {
            self.queue_answer(CommandReply::Error(error), 0, false);
        }
    }

    fn on_command(&mut self, mut command: Command, clock: Clock, out: &mut dyn Requests) {
        if self.client.queue.is_some() {
            command.stand_alone();
        }
        let bytes = command.size();
        let skip = self.client.replies == ReplyMode::Skip;
        let (shared, serving) = (&*self.shared, &*self.serving);
        let (client, rng) = (&mut self.client, &mut self.rng);
        let mut cx = Cx { client, shared, serving, clock, rng, is_relative: false };
        let plan = commands::dispatch(&mut cx, &mut command);
        let delay = cx.is_relative.then(|| Delay::of_all(clock.wall));
        let is_silent = self.client.take_silence(skip);
        self.is_draining |= self.client.is_leaving;
        let lane = match &plan {
            Plan::Now(_) => Ok(LaneId::default()),
            plan => {
                let keyspace = match plan {
                    Plan::Transact(transaction, _) => transaction.keyspace(),
                    _ => self.client.keyspace,
                };
                let served = selected(&self.serving, keyspace);
                served.and_then(|served| plan.lane(served, self.client.last_command))
            }
        };
        let lane = match lane {
            Ok(lane) => lane,
            Err(error) => {
                let answer = CommandReply::Error(error.to_string());
                return self.queue_answer(answer, bytes, is_silent);
            }
        };
        match plan {
            Plan::Now(answer) => self.queue_answer(answer, bytes, is_silent),
            Plan::One(single, operation) => {
                self.queue(Work::Single(single), lane, bytes, is_silent);
                self.launch(0, (operation, delay), out);
            }
            Plan::Many(many) => {
                self.barrier = many.is_watch();
                let bytes = bytes + many.room();
                self.queue(Work::Many(Box::new(many)), lane, bytes, is_silent);
                self.issue(out);
            }
            Plan::Transact(mut transaction, operation) => {
                let bytes = bytes + transaction.bytes();
                self.barrier = transaction.chosen().is_some();
                let delay = transaction.take_delay(clock.wall);
                self.queue(Work::Transaction(transaction), lane, bytes, is_silent);
                self.launch(0, (operation, delay), out);
            }
            Plan::Pages(pages) => {
                self.queue(Work::Pages(Box::new(pages)), lane, bytes, is_silent);
                self.barrier = true;
                self.ask_page(out);
            }
            Plan::Flush(flush) => {
                self.queue(Work::Flush(Box::new(flush)), lane, bytes, is_silent);
                self.barrier = true;
                self.ask_page(out);
            }
        }
    }

    /// Queues a reply that is known, or writes it if nothing is before it.
    fn queue_answer(&mut self, answer: CommandReply, bytes: usize, is_silent: bool) {
        if self.pending.is_empty() {
            if !is_silent {
                answer.write(&mut Encoder::new(&mut self.output, self.client.protocol));
            }
        } else {
            self.held += answer.size();
            self.queue(Work::Done(answer), LaneId::default(), bytes, is_silent);
        }
    }

    fn queue(&mut self, work: Work, lane: LaneId, bytes: usize, is_silent: bool) {
        let protocol = self.client.protocol;
        self.pending_bytes += bytes;
        self.pending.push_back(Pending { work, lane, bytes, running: 0, protocol, is_silent });
    }

    /// Writes the replies that are known, up to the first that is not.
    fn flush(&mut self) {
        while let Some(Pending { work: Work::Done(answer), .. }) = self.pending.front_mut() {
            let answer = core::mem::replace(answer, CommandReply::OK);
            self.held -= answer.size();
            let Some(command) = self.pending.pop_front() else { break };
            self.front = self.front.wrapping_add(1);
            self.pending_bytes -= command.bytes;
            if !command.is_silent {
                answer.write(&mut Encoder::new(&mut self.output, command.protocol));
            }
        }
        self.tell_waiting();
        self.part();
    }

    /// Starts what may start now.
    fn go_on(&mut self, now: WallTime, out: &mut dyn Requests) {
        while self.flights.has_ready() && self.may_start() {
            let Some((number, lane, operation)) = self.flights.start_next(now) else { break };
            out.start(number, lane, operation, None);
        }
        if self.is_issuing() {
            self.issue(out);
        } else if self.barrier {
            self.ask_page(out);
        }
    }

    /// Adds an operation of the last command.
    fn launch(
        &mut self,
        index: u32,
        (operation, delay): (Operation, Option<Delay>),
        out: &mut dyn Requests,
    ) {
        let may_start = self.may_start();
        let number = self.front.wrapping_add(self.pending.len() as u32).wrapping_sub(1);
        let last = self.pending.back_mut().expect("the command was queued before its operations");
        last.running += 1;
        let lane = last.lane;
        if let Some((number, operation)) =
            self.flights.add(number, index, lane, (operation, delay), may_start)
        {
            out.start(number, lane, operation, None);
        }
    }

    /// Whether the last command has operations that were not added yet.
    fn is_issuing(&self) -> bool {
        matches!(self.pending.back(), Some(Pending { work: Work::Many(many), .. }) if many.has_more())
    }

    /// Adds operations of the last command while there is room for them.
    fn issue(&mut self, out: &mut dyn Requests) {
        while self.flights.len() < OPERATIONS_MAX && !self.flights.has_ready() {
            let Some(Pending { work: Work::Many(many), .. }) = self.pending.back_mut() else {
                return;
            };
            let Some((index, operation)) = many.issue() else { return };
            self.launch(index, (operation, None), out);
        }
        probe!("resp/command_takes_turns");
    }

    /// Asks for the next page of the last command, or has its keys deleted, once no other operation
    /// is under way.
    fn ask_page(&mut self, out: &mut dyn Requests) {
        if !self.flights.is_empty() {
            return;
        }
        let held = self.pending.back().map_or(0, |command| command.work.held());
        let operations = match self.pending.back_mut().map(|command| &mut command.work) {
            Some(Work::Pages(pages)) => vec![pages.operation()],
            Some(Work::Flush(flush)) => flush.operations(),
            _ => return,
        };
        self.held = self.held - held + self.pending.back().map_or(0, |it| it.work.held());
        for (index, operation) in operations.into_iter().enumerate() {
            self.launch(index as u32, (operation, None), out);
        }
    }

    /// Whether one more operation may start: the values under way, those held and the output are
    /// within their bound, as far as can be foreseen. One may always start once the client takes
    /// its replies, so that a value of any length can be read.
    fn may_start(&self) -> bool {
        if self.flights.started() == 0 {
            return self.output.len() < CLIENT_QUEUE_BYTES_MAX;
        }
        let coming = self.flights.reads() * self.expected;
        self.output.len() + self.held + coming <= CLIENT_READ_BYTES_MAX
    }
}

/// Takes the outcome of an operation of a command; turns the command into its reply if it was the
/// last. Some change what the connection remembers.
fn on_outcome(
    client: &mut Client,
    command: &mut Pending,
    index: u32,
    outcome: Outcome,
    (is_last, now): (bool, WallTime),
) {
    let lane = command.lane;
    let answer = match &mut command.work {
        Work::Transaction(transaction) => {
            let chosen = transaction.chosen().filter(|_| matches!(outcome, Outcome::Transacted(_)));
            client.keyspace = chosen.unwrap_or(client.keyspace);
            Some(transaction.answer(outcome, now))
        }
        Work::Single(single) => Some(Single::answer(*single, outcome, now)),
        Work::Pages(pages) => pages.on_outcome(outcome),
        Work::Flush(flush) => flush.on_outcome(outcome),
        Work::Many(many) => {
            many.on_outcome(index, outcome);
            (is_last && !many.has_more()).then(|| match many.is_watch() {
                true => watch(client, lane, many),
                false => many.finish(),
            })
        }
        Work::Done(_) => None,
    };
    if let Some(answer) = answer {
        command.work = Work::Done(answer);
    }
}

/// Keys were read to be watched, or could not be.
fn watch(client: &mut Client, lane: LaneId, many: &mut Many) -> CommandReply {
    let answer = many.finish();
    let Some(found) = many.found() else {
        client.watched.lose();
        return answer;
    };
    match client.watched.add(client.keyspace, lane, found) {
        Ok(()) => answer,
        Err(refusal) => CommandReply::Error(error::refusal(&refusal)),
    }
}
