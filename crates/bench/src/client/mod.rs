//! The client: one thread, one poller, all connections.
//!
//! The client shares the machine with the servers it measures, so an operation costs it little more
//! than the system calls: one read and one write per turn of a connection, commands written from
//! templates into one buffer, replies scanned in another, no allocation. The poller is
//! edge-triggered and a connection stays registered for both directions, so an operation needs no
//! call to the poller other than the wait that all ready connections share.

mod alarm;
mod answers;
mod connection;
pub(crate) mod reconnect;
mod replies;
mod send;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Events, Poll, Token};
use quorate_kernel::time::{Span, Time};

use crate::config::{Extent, Pace, Stop, Wire};
use crate::error::BenchError;
use crate::load::mixes::{Kind, Source};
use crate::load::schedule::Schedule;
use crate::progress::Progress;
use crate::report::disks::wall_us;
use crate::report::gaps::Gap;
use crate::report::record::Recorder;
use crate::report::usage::Watch;

use alarm::Alarm;
use connection::{Connection, Phase};

/// One read takes at most this much.
const READ_BYTES_MAX: usize = 256 * 1024;
/// One wait reports at most this many connections.
const EVENTS_MAX: usize = 1024;
/// How long replies are awaited after the window has closed.
const DRAIN: Span = Span::secs(2);
/// A run without an end in time gives up after this long without a reply.
const STALL: Span = Span::secs(30);
/// How often servers are looked at, so that one that dies still has recent figures.
const SAMPLE_EVERY: Span = Span::secs(1);

const ALARM: Token = Token(usize::MAX);

/// How a client is to behave; the part of the configuration that both phases share.
#[derive(Clone, Debug)]
pub struct Manner {
    pub endpoints: Vec<SocketAddr>,
    pub wire: Wire,
    pub keyspace: Option<String>,
    pub connection_count: usize,
    pub pipeline_depth: usize,
    pub pace: Pace,
    /// `None` for as long as the source gives commands.
    pub extent: Option<Extent>,
    pub warm_up: Duration,
    pub interval: Duration,
    pub reconnect: bool,
    pub stop: Stop,
}

/// What a client leaves behind.
#[derive(Debug)]
pub struct Outcome {
    pub recorder: Recorder,
    pub watch: Watch,
    /// The wall clock at the client's time 0, in microseconds since 1970.
    pub origin_us: u64,
    /// The longest gap of a connection that never broke; `None` if there is no such connection.
    pub stayed_gap: Option<Span>,
    /// The longest gap of a connection that broke; `None` if there is no such connection.
    pub reconnected_gap: Option<Span>,
    pub broken_count: u64,
    /// Operations without a reply when the waiting for replies ended.
    pub unanswered_count: u64,
    /// Operations of an open loop that were due and never sent.
    pub unsent_count: u64,
    pub command_count: u64,
    pub was_stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    WarmUp,
    Measuring,
    Draining { until: Time },
}

/// The event loop and everything it works on.
pub struct Client<S> {
    manner: Manner,
    setup: Vec<u8>,
    source: S,
    recorder: Recorder,
    watch: Watch,
    progress: Progress,
    poll: Poll,
    alarm: Alarm,
    alarm_at: Time,
    schedule: Option<Schedule>,
    connections: Vec<Connection>,
    /// In an open loop, the connections with room for another command.
    free: VecDeque<usize>,
    origin: Instant,
    stage: Stage,
    closes_at: Time,
    next_tick: Time,
    next_sample: Time,
    last_reply: Time,
    in_flight_count: usize,
    /// Connections that are on their way to being open.
    unsettled_count: usize,
    command_count: u64,
    /// Operations begun since the window opened.
    begun_count: u64,
    unsent_count: u64,
    broken_count: u64,
    is_exhausted: bool,
    was_stopped: bool,
    read_buffer: Vec<u8>,
    write_buffer: Vec<u8>,
}

impl<S: Source> Client<S> {
    /// Opens all connections.
    pub fn new(
        manner: Manner,
        source: S,
        watch: Watch,
        progress: Progress,
    ) -> Result<Client<S>, BenchError> {
        reconnect::allow_open_files(manner.connection_count);
        let poll = Poll::new().map_err(BenchError::system("create a poller"))?;
        let alarm =
            Alarm::new(poll.registry(), ALARM).map_err(BenchError::system("create a timer"))?;
        let setup = send::setup_command(manner.wire, manner.keyspace.as_deref());
        let mut client = Client {
            setup,
            source,
            recorder: Recorder::default(),
            watch,
            progress,
            poll,
            alarm,
            alarm_at: Time(0),
            schedule: None,
            connections: Vec::with_capacity(manner.connection_count),
            free: VecDeque::with_capacity(manner.connection_count),
            origin: Instant::now(),
            stage: Stage::WarmUp,
            closes_at: Time(u64::MAX),
            next_tick: Time(0),
            next_sample: Time(0),
            last_reply: Time(0),
            in_flight_count: 0,
            unsettled_count: 0,
            command_count: 0,
            begun_count: 0,
            unsent_count: 0,
            broken_count: 0,
            is_exhausted: false,
            was_stopped: false,
            read_buffer: vec![0; READ_BYTES_MAX],
            write_buffer: Vec::new(),
            manner,
        };
        client.open_connections()?;
        Ok(client)
    }

    /// Runs warm-up, measured window and drain.
    pub fn run(mut self) -> Result<Outcome, BenchError> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        let begin = self.now();
        self.next_tick = begin + span(self.manner.warm_up);
        self.next_sample = begin;
        self.last_reply = begin;
        if let Pace::Open { rate_per_second } = self.manner.pace {
            self.schedule = Some(Schedule::new(begin, rate_per_second));
        }
        if self.manner.warm_up.is_zero() {
            self.tick(begin)?;
        }
        for index in 0..self.connections.len() {
            self.set_up(index)?;
        }
        loop {
            let now = self.now();
            // What is due goes out before the window may close on it.
            self.send_due(now)?;
            if now >= self.next_tick {
                self.tick(now)?;
            }
            if self.unsettled_count > 0 {
                self.settle_connections(now)?;
            }
            if self.is_done(now) {
                return Ok(self.finish(now));
            }
            let timeout = self.timeout(now)?;
            match self.poll.poll(&mut events, Some(timeout)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(BenchError::system("wait for sockets")(error)),
            }
            for event in &events {
                self.on_event(event)?;
            }
        }
    }

    fn now(&self) -> Time {
        Time(self.origin.elapsed().as_nanos() as u64)
    }

    fn on_event(&mut self, event: &Event) -> Result<(), BenchError> {
        if event.token() == ALARM {
            return Ok(());
        }
        let index = event.token().0;
        match self.connections[index].phase {
            Phase::Connecting { .. } => self.on_connect(index, event),
            Phase::SettingUp | Phase::Ready => {
                // Both directions are always reported together, so look before calling.
                if event.is_writable()
                    && let Err(error) = self.connections[index].flush()
                {
                    return self.on_break(index, &error.to_string());
                }
                if event.is_readable() {
                    return self.on_readable(index, event.is_read_closed() || event.is_error());
                }
                Ok(())
            }
            Phase::Broken { .. } | Phase::Closed => Ok(()),
        }
    }

    /// Whether another operation may begin.
    fn may_begin(&self) -> bool {
        if self.is_exhausted {
            return false;
        }
        match (self.stage, self.manner.extent) {
            (Stage::WarmUp, _) => true,
            (Stage::Measuring, Some(Extent::Operations(count))) => self.begun_count < count,
            (Stage::Measuring, _) => true,
            (Stage::Draining { .. }, _) => false,
        }
    }

    /// Opens and closes the window, ends pieces of the time line, shows progress.
    fn tick(&mut self, now: Time) -> Result<(), BenchError> {
        let is_stopped = self.manner.stop.is_raised();
        match self.stage {
            Stage::WarmUp if is_stopped => return Err(BenchError::Interrupted),
            Stage::WarmUp => {
                self.watch.open();
                self.recorder.open(now);
                for connection in &mut self.connections {
                    connection.gap = Gap::new(now);
                }
                self.stage = Stage::Measuring;
                if let Some(Extent::Time(time)) = self.manner.extent {
                    self.closes_at = now + span(time);
                }
            }
            Stage::Measuring => {
                if let Some(interval) = self.recorder.end_interval(now) {
                    self.progress.show(&interval);
                }
                if now >= self.closes_at || is_stopped {
                    self.was_stopped = is_stopped;
                    self.close_window(now);
                }
                if now >= self.next_sample {
                    self.watch.sample();
                    self.next_sample = now + SAMPLE_EVERY;
                }
            }
            Stage::Draining { .. } => {}
        }
        let has_end = matches!(self.manner.extent, Some(Extent::Time(_)));
        if !has_end && now - self.last_reply > STALL {
            let outstanding = self.in_flight_count;
            return Err(BenchError::Stalled { seconds: STALL.0 / 1_000_000_000, outstanding });
        }
        self.next_tick = self.closes_at.min(now + span(self.manner.interval));
        if let Stage::Draining { until } = self.stage {
            self.next_tick = until;
        }
        Ok(())
    }

    fn close_window(&mut self, now: Time) {
        self.watch.close();
        let is_waiting = self.in_flight_count > 0 || self.unsettled_count > 0;
        self.recorder.close(now, is_waiting);
        for connection in &mut self.connections {
            if !connection.in_flight.is_empty() || connection.phase != Phase::Ready {
                connection.gap.close(now);
            }
        }
        self.count_unsent(now);
        self.stage = Stage::Draining { until: now + DRAIN };
        self.closes_at = Time(u64::MAX);
    }

    /// Whether everything that was begun has ended, or was given up.
    fn is_done(&mut self, now: Time) -> bool {
        if self.stage == Stage::Measuring && !self.may_begin() && self.in_flight_count == 0 {
            self.close_window(now);
        }
        match self.stage {
            Stage::Draining { until } => self.in_flight_count == 0 || now >= until,
            Stage::WarmUp | Stage::Measuring => false,
        }
    }

    fn finish(mut self, now: Time) -> Outcome {
        let mut unanswered_count = 0;
        for connection in &self.connections {
            for pending in &connection.in_flight {
                if let Some(class) = replies::class(pending.operation.kind) {
                    self.recorder.waited(class, pending.begun, now);
                    unanswered_count += 1;
                }
            }
        }
        let longest = |has_broken: bool| {
            let with = self.connections.iter().filter(|one| one.has_broken == has_broken);
            with.map(|connection| connection.gap.longest()).max()
        };
        Outcome {
            origin_us: wall_us().saturating_sub(self.now().0 / 1000),
            stayed_gap: longest(false),
            reconnected_gap: longest(true),
            broken_count: self.broken_count,
            unanswered_count,
            unsent_count: self.unsent_count,
            command_count: self.command_count,
            was_stopped: self.was_stopped,
            recorder: self.recorder,
            watch: self.watch,
        }
    }

    /// How long nothing needs to be done without an event; sets the alarm of an open loop.
    fn timeout(&mut self, now: Time) -> Result<Duration, BenchError> {
        let mut until = self.next_tick;
        if let Stage::Draining { until: end } = self.stage {
            until = until.min(end);
        }
        if self.unsettled_count > 0 {
            until = until.min(self.next_settling(now));
        }
        if let Some(schedule) = &self.schedule
            && !self.free.is_empty()
            && self.may_begin()
            && schedule.next_time() != self.alarm_at
        {
            self.alarm_at = schedule.next_time();
            let delay = self.alarm_at - now;
            self.alarm.set(delay).map_err(BenchError::system("set a timer"))?;
        }
        Ok(Duration::from_nanos((until - now).0))
    }

    /// Counts what an open loop did not get to send, with at least the time it has waited.
    fn count_unsent(&mut self, now: Time) {
        let Some(schedule) = &mut self.schedule else { return };
        for _ in 0..schedule.due_count(now) {
            let due = schedule.take();
            self.write_buffer.clear();
            let Some(operation) = self.source.next(&mut self.write_buffer) else { return };
            if let Some(class) = replies::class(operation.kind) {
                self.recorder.waited(class, due, now);
            }
            self.unsent_count += 1;
            if operation.kind == Kind::Insert {
                self.source.inserted(operation.key);
            }
        }
    }
}

/// A library duration as a span; far more than any run for one that is longer still.
fn span(duration: Duration) -> Span {
    Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2))
}
