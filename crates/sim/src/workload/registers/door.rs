//! A client's RESP connection: its commands enter the host's session as bytes, in pieces, and its
//! replies are read back from bytes.

use bytes::{Bytes, BytesMut};
use quorate_check::history::Completion;
use quorate_doors::resp::client::{ReplyParser, RespReply, write_command};
use quorate_doors::resp::{Session, Shared};
use quorate_doors::{
    Clock, Connected, Identity, NoFacts, Opening, Requests, Serving, Session as _,
};
use quorate_kernel::engine::Served;
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::operation::{Cursor, Operation, Outcome, Refusal};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use quorate_kernel::watch::Watch;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock};

/// What every simulated host says about itself. It keeps no state, so all runs share one.
static SHARED: LazyLock<Arc<Shared>> = LazyLock::new(|| {
    let (identity, facts) = (Identity::default(), Box::new(NoFacts));
    Shared::new(Opening { identity, facts, port: 0, clients_max: 0 })
});

/// The one keyspace of those runs.
static SERVING: LazyLock<Arc<Serving>> = LazyLock::new(|| {
    let engine = quorate_protocols::engines::ENGINES[0];
    let settings = engine.complete(&BTreeMap::new()).expect("defaults");
    let keyspace = Keyspace::new("default", LaneId::KEYSPACES, engine.name, settings, 1);
    let served = Served::new(Arc::new(keyspace), engine, quorate_protocols::engines::ENGINES);
    Arc::new(Serving::new(vec![Some(served)], true))
});

/// What one command asks, so that its reply can be told to the operations in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Get,
    Set,
    Delete,
    Scan,
    /// The number of keys.
    GetMany(usize),
    /// The number of keys.
    SetMany(usize),
}

/// The operations a session starts, kept until the world takes them.
struct Started<'a>(&'a mut Vec<(u32, Operation)>);

impl Requests for Started<'_> {
    fn start(&mut self, number: u32, _: LaneId, operation: Operation, _: Option<Span>) {
        self.0.push((number, operation));
    }

    fn watch(&mut self, _: u32, _: LaneId, _: Watch) {
        unreachable!("these clients follow nothing")
    }

    fn unwatch(&mut self, _: u32) {
        unreachable!("these clients follow nothing")
    }
}

/// A connection: both its ends.
pub struct RespDoor {
    session: Session,
    /// What the host has read and the session has not.
    input: BytesMut,
    parser: ReplyParser,
    /// What the client has read and not parsed.
    output: BytesMut,
    /// The commands without a reply, and the flight of each one's first operation.
    waiting: VecDeque<(Command, usize)>,
}

impl RespDoor {
    /// A new connection.
    #[must_use]
    pub fn new(client: u64, seed: u64) -> RespDoor {
        let connected = Connected { id: client, seed, ..Connected::default() };
        RespDoor {
            session: Session::new(connected, Arc::clone(&SHARED), Arc::clone(&SERVING)),
            input: BytesMut::new(),
            parser: ReplyParser::default(),
            output: BytesMut::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Sends a batch of operations as pipelined commands. The stream is cut at random places, as a
    /// network cuts it. What the session starts is appended to `started`.
    pub fn send(
        &mut self,
        batch: &[Operation],
        rng: &mut Rng,
        started: &mut Vec<(u32, Operation)>,
    ) {
        let mut bytes = BytesMut::new();
        let mut flight = 0;
        while flight < batch.len() {
            let (command, count) = write_next(&batch[flight..], rng, &mut bytes);
            self.waiting.push_back((command, flight));
            flight += count;
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let whole = rng.chance_ppm(700_000);
            let length =
                if whole { rest.len() } else { rng.between(1, rest.len() as u64) as usize };
            let (piece, later) = rest.split_at(length);
            self.input.extend_from_slice(piece);
            self.session.feed(&mut self.input, Clock::default(), &mut Started(started));
            rest = later;
        }
    }

    /// Gives the outcome of an operation to the session. Calls `told` for every flight whose reply
    /// the client has read, in the order of the commands.
    ///
    /// # Errors
    /// The reply is none that this command can have.
    pub fn complete(
        &mut self,
        number: u32,
        outcome: Outcome,
        started: &mut Vec<(u32, Operation)>,
        told: &mut dyn FnMut(usize, Completion),
    ) -> Result<(), String> {
        self.session.complete(number, outcome, Clock::default(), &mut Started(started));
        if self.session.wants_feed(&self.input) {
            self.session.feed(&mut self.input, Clock::default(), &mut Started(started));
        }
        let output = self.session.output();
        for chunk in output.chunks() {
            self.output.extend_from_slice(chunk);
        }
        output.advance(output.len());
        loop {
            match self.parser.next(&mut self.output) {
                Ok(None) => return Ok(()),
                Ok(Some(reply)) => self.tell(reply, told)?,
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn tell(
        &mut self,
        reply: RespReply,
        told: &mut dyn FnMut(usize, Completion),
    ) -> Result<(), String> {
        let (command, flight) =
            self.waiting.pop_front().ok_or_else(|| format!("a reply to nothing: {reply:?}"))?;
        if let Some(code) = reply.error_code() {
            let completion = match code {
                b"UNKNOWNOUTCOME" => Completion::Unknown,
                b"NOQUORUM" | b"OVERLOADED" | b"SHUTDOWN" => Completion::Refused,
                // A host that has just started may not know its keyspaces yet.
                b"ERR" if is_not_open(&reply) => Completion::Refused,
                _ => return Err(format!("{command:?} was answered by {reply:?}")),
            };
            (flight..flight + command.flights()).for_each(|each| told(each, completion.clone()));
            return Ok(());
        }
        command.read(reply, flight, told)
    }
}

impl Command {
    /// How many operations it asks for.
    fn flights(self) -> usize {
        match self {
            Command::GetMany(count) | Command::SetMany(count) => count,
            _ => 1,
        }
    }

    fn read(
        self,
        reply: RespReply,
        flight: usize,
        told: &mut dyn FnMut(usize, Completion),
    ) -> Result<(), String> {
        match (self, reply) {
            (Command::Get, RespReply::Bulk(value)) => told(flight, Completion::Value(Some(value))),
            (Command::Get, RespReply::Null) => told(flight, Completion::Value(None)),
            (Command::Set, RespReply::Simple(text)) if text == "OK" => {
                told(flight, Completion::Written);
            }
            (Command::SetMany(count), RespReply::Simple(text)) if text == "OK" => {
                (flight..flight + count).for_each(|each| told(each, Completion::Written));
            }
            (Command::Delete, RespReply::Integer(count @ 0..=1)) => {
                told(flight, Completion::Deleted { existed: count == 1 });
            }
            (Command::GetMany(count), RespReply::Array(values)) if values.len() == count => {
                for (each, value) in values.into_iter().enumerate() {
                    let value = match value {
                        RespReply::Bulk(value) => Some(value),
                        RespReply::Null => None,
                        other => return Err(format!("MGET answered {other:?}")),
                    };
                    told(flight + each, Completion::Value(value));
                }
            }
            (Command::Scan, reply) => told(flight, page(&reply)?),
            (command, other) => return Err(format!("{command:?} was answered by {other:?}")),
        }
        Ok(())
    }
}

fn is_not_open(reply: &RespReply) -> bool {
    let text = Refusal::NotOpen.to_string();
    matches!(reply, RespReply::Error(told) if told.ends_with(text.as_bytes()))
}

fn page(reply: &RespReply) -> Result<Completion, String> {
    let wrong = || format!("SCAN was answered by {reply:?}");
    let RespReply::Array(parts) = reply else { return Err(wrong()) };
    let [RespReply::Bulk(cursor), RespReply::Array(list)] = &parts[..] else { return Err(wrong()) };
    let cursor = std::str::from_utf8(cursor).ok().and_then(|text| text.parse::<u64>().ok());
    let next = match cursor.ok_or_else(wrong)? {
        0 => None,
        token => Some(Cursor::at(token)),
    };
    let key = |each: &RespReply| match each {
        RespReply::Bulk(key) => Ok(key.clone()),
        _ => Err(wrong()),
    };
    let keys: Vec<Bytes> = list.iter().map(key).collect::<Result<_, _>>()?;
    Ok(Completion::Page { keys, next })
}

/// Writes the next command of a batch; neighbours of one kind sometimes share a command. Returns
/// how many operations it took.
fn write_next(batch: &[Operation], rng: &mut Rng, out: &mut BytesMut) -> (Command, usize) {
    let together =
        |is_same: fn(&Operation) -> bool| batch.iter().take_while(|asked| is_same(asked)).count();
    match &batch[0] {
        Operation::Get { key, .. } => {
            let count = together(|operation| matches!(operation, Operation::Get { .. }));
            if count < 2 || rng.chance_ppm(500_000) {
                write_command(out, &[b"GET", key]);
                return (Command::Get, 1);
            }
            let mut words: Vec<&[u8]> = vec![b"MGET"];
            words.extend(batch[..count].iter().filter_map(Operation::key).map(|key| &key[..]));
            write_command(out, &words);
            (Command::GetMany(count), count)
        }
        Operation::Put { key, value, .. } => {
            let count = together(|operation| matches!(operation, Operation::Put { .. }));
            if count < 2 || rng.chance_ppm(500_000) {
                write_command(out, &[b"SET", key, value]);
                return (Command::Set, 1);
            }
            let mut words: Vec<&[u8]> = vec![b"MSET"];
            for each in &batch[..count] {
                if let Operation::Put { key, value, .. } = each {
                    words.extend([&key[..], &value[..]]);
                }
            }
            write_command(out, &words);
            (Command::SetMany(count), count)
        }
        Operation::Delete { key, .. } => {
            write_command(out, &[b"DEL", key]);
            (Command::Delete, 1)
        }
        Operation::Scan { from, limit } => {
            let (from, limit) = (from.to_string(), limit.to_string());
            write_command(out, &[b"SCAN", from.as_bytes(), b"COUNT", limit.as_bytes()]);
            (Command::Scan, 1)
        }
        Operation::Transact { .. } | Operation::Tree(_) | Operation::HowEnded { .. } => {
            unreachable!("these clients ask for one key at a time")
        }
    }
}
