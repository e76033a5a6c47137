//! One connection to another host.
//!
//! Both sides first prove that they belong to the cluster; nothing else is read before. Then each
//! says who it is, in a record of the proven session, and from then on there are frames: in records
//! too or, between two hosts of one machine, as they are.
//!
//! ```text
//! who dials                                  who accepts
//! "QRTE" | version | first message  ------>
//!                                   <------  "QRTE" | version | second message, or the end
//! record: hello | encrypts          ------>
//!                                   <------  record: hello | encrypts
//! ```

use super::handshake::{CONNECTION, HELLO_BYTES, Hello, HelloError, MAGIC};
use super::progress::{self, Report};
use crate::io::{self, Progress};
use crate::proof::{self, Initiator, MESSAGE_BYTES, Purpose, RECORD_BYTES_MAX, Session};
use bytes::BytesMut;
use mio::net::TcpStream;
use quorate_kernel::ids::{Incarnation, Lsn, NodeId};
use quorate_kernel::rope::Rope;
use quorate_kernel::wire::{frame_length, frame_source};
use quorate_node::pump::Input;
use quorate_store::Secret;
use std::collections::HashSet;
use std::io::Write;
use std::time::Instant;

/// How much room a read from a peer gets.
const READ_BYTES: usize = 256 * 1024;
/// The least room left before more is taken.
const READ_BYTES_MIN: usize = 16 * 1024;
/// How much room a read gets of one that has proven nothing.
const READ_BYTES_UNPROVEN: usize = 1024;
/// How many bytes are encrypted at a time.
const SEAL_BYTES: usize = 4 * RECORD_BYTES_MAX;
/// What stands before the first message of either side: whose protocol this is, and which version.
const PREFACE_BYTES: usize = MAGIC.len() + 1;
/// What a record of a hello holds.
const GREETING_BYTES: usize = HELLO_BYTES + 1;
const PREFACE: [u8; PREFACE_BYTES] = [MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3], CONNECTION];

/// How far a connection has come.
enum Stage {
    /// The other side has proven nothing, and was told nothing.
    Unproven,
    /// It was asked for a proof.
    Asked(Initiator),
    /// It belongs to the cluster, and has not said who it is.
    Proven(Session),
    /// Frames, as they are.
    Plain(Incarnation),
    /// Frames, in records.
    Sealed(Incarnation, Session),
}

/// One connection.
pub(crate) struct Link {
    pub stream: TcpStream,
    /// Which peer it is; known from the start if this host dialled, from its hello otherwise.
    pub peer: Option<usize>,
    pub began: Instant,
    /// When something last came of it.
    pub heard_at: Instant,
    /// Which start of the peer, and which run of it, said hello.
    pub greeted: (Incarnation, u64),
    /// What the peer was told of how far this host has synced, and when.
    pub said: Option<(Lsn, Instant)>,
    /// How many nodes it was last said of that they have left.
    pub left_said: Option<usize>,
    pub is_readable: bool,
    pub is_dirty: bool,
    /// The peer will send nothing more than what the socket holds.
    pub is_ending: bool,
    /// The secret that both sides know, or that this host has shown to know.
    pub secret: Option<Secret>,
    /// Whether this host wants frames encrypted here.
    encrypts: bool,
    stage: Stage,
    /// What arrived and was not read yet: of the proof, or records.
    raw: BytesMut,
    /// Frames that arrived, the last of them in part.
    input: BytesMut,
    /// What is to be written; of a sealed connection, what is to be encrypted.
    pub out: Rope,
    /// Records that are to be written before anything in `out`.
    records: Rope,
}

/// What the other side said of itself.
pub(super) struct Greeting {
    pub hello: Hello,
    /// Whether it wants frames encrypted here.
    pub encrypts: bool,
}

/// What has arrived beside the frames of lanes.
#[derive(Default)]
pub(super) struct Arrived {
    /// How many frames were not from the peer, and dropped.
    pub foreign: u64,
    /// How many frames of keyspaces were dropped because of a backlog.
    pub late: u64,
    /// How far the peer says that it has synced.
    pub synced: Option<Lsn>,
    /// Who has left for good, as the peer says.
    pub left: Vec<NodeId>,
}

/// Which frames of lanes are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// None: this host is not there yet.
    None,
    /// Not those of keyspaces: the disk has a backlog.
    NoKeyspaces,
    All,
}

/// Why a connection is closed.
#[derive(Debug)]
pub(super) enum Loss {
    Closed,
    Garbage,
    Refused(HelloError),
}

impl Link {
    pub fn new(stream: TcpStream, peer: Option<usize>, encrypts: bool) -> Link {
        Link {
            stream,
            peer,
            began: Instant::now(),
            heard_at: Instant::now(),
            greeted: (Incarnation::default(), 0),
            said: None,
            left_said: None,
            is_readable: false,
            is_dirty: false,
            is_ending: false,
            secret: None,
            encrypts,
            stage: Stage::Unproven,
            raw: BytesMut::new(),
            input: BytesMut::new(),
            out: Rope::default(),
            records: Rope::default(),
        }
    }

    /// Asks the other side for a proof, and gives it one.
    pub fn ask(&mut self, secret: Secret) {
        let (asked, first) = proof::ask(Purpose::Link, &secret);
        self.out.push_slice(&PREFACE);
        self.out.push_slice(&first);
        (self.stage, self.secret) = (Stage::Asked(asked), Some(secret));
    }

    /// Whether it carries frames.
    pub fn is_up(&self) -> bool {
        matches!(self.stage, Stage::Plain(_) | Stage::Sealed(..))
    }

    /// How many bytes wait to be written.
    pub fn waiting(&self) -> usize {
        self.out.len() + self.records.len()
    }

    /// Reads once.
    pub fn read(&mut self) -> Result<Progress, Loss> {
        let (buffer, least, room) = match self.stage {
            Stage::Plain(_) => {
                let length = frame_length(&self.input).map_err(|_| Loss::Garbage)?;
                let needed = length.unwrap_or(0).saturating_sub(self.input.len());
                (&mut self.input, needed.max(READ_BYTES_MIN), needed.max(READ_BYTES))
            }
            Stage::Sealed(..) => (&mut self.raw, READ_BYTES_MIN, READ_BYTES),
            _ => (&mut self.raw, 1, READ_BYTES_UNPROVEN),
        };
        if buffer.capacity() - buffer.len() < least {
            buffer.reserve(room);
        }
        let before = buffer.len();
        let progress = io::read(&self.stream, buffer).map_err(|_| Loss::Closed)?;
        if buffer.len() > before {
            self.heard_at = Instant::now();
        }
        Ok(progress)
    }

    /// Goes on with the proof; answers what the other side says of itself, once it has. `me` is
    /// what this host says.
    pub fn prove(&mut self, secrets: &[Secret], me: &Hello) -> Result<Option<Greeting>, Loss> {
        loop {
            match &mut self.stage {
                Stage::Unproven => {
                    let Some(first) = self.message()? else { return Ok(None) };
                    let answered = proof::answer(Purpose::Link, secrets, &first);
                    self.out.push_slice(&PREFACE);
                    let Some((secret, second, session)) = answered else {
                        // So that it can tell a wrong secret from a host that is away.
                        let _ = self.write();
                        return Err(Loss::Refused(HelloError::Secret));
                    };
                    self.out.push_slice(&second);
                    (self.stage, self.secret) = (Stage::Proven(session), Some(secret));
                }
                Stage::Asked(_) => {
                    let Some(second) = self.message()? else { return Ok(None) };
                    let stage = std::mem::replace(&mut self.stage, Stage::Unproven);
                    let Stage::Asked(asked) = stage else { unreachable!("it was matched") };
                    let session = asked.answered(&second);
                    let mut session = session.ok_or(Loss::Refused(HelloError::Refused))?;
                    self.out.push_slice(&session.seal(&greeting(me, self.encrypts)));
                    self.stage = Stage::Proven(session);
                }
                Stage::Proven(session) => {
                    let Some(record) = proof::next(&mut self.raw) else { return Ok(None) };
                    let mut plain = BytesMut::new();
                    let opened = session.open(&record, &mut plain);
                    opened.map_err(|_| Loss::Refused(HelloError::Broken))?;
                    let bytes: &[u8; GREETING_BYTES] =
                        plain[..].try_into().map_err(|_| Loss::Garbage)?;
                    let (hello, encrypts) = bytes.split_first_chunk().expect("a byte follows it");
                    let hello = Hello::from_bytes(hello).map_err(Loss::Refused)?;
                    return Ok(Some(Greeting { hello, encrypts: encrypts != [0] }));
                }
                Stage::Plain(_) | Stage::Sealed(..) => return Ok(None),
            }
        }
    }

    /// Cuts off the other side's message of the proof, if it has arrived whole. What stands before
    /// it is looked at first: another version may say less.
    fn message(&mut self) -> Result<Option<[u8; MESSAGE_BYTES]>, Loss> {
        let length = self.raw.len().min(MAGIC.len());
        if self.raw[..length] != MAGIC[..length] {
            return Err(Loss::Refused(HelloError::Magic));
        }
        match self.raw.get(MAGIC.len()) {
            Some(&found) if found != CONNECTION => {
                let _ = self.stream.write(&PREFACE);
                return Err(Loss::Refused(HelloError::Connection { found }));
            }
            _ => {}
        }
        if self.raw.len() < PREFACE_BYTES + MESSAGE_BYTES {
            return Ok(None);
        }
        let bytes = self.raw.split_to(PREFACE_BYTES + MESSAGE_BYTES);
        Ok(Some(*bytes[PREFACE_BYTES..].first_chunk().expect("its length was looked at")))
    }

    /// Why the other side ended the connection before it carried frames, if that says something:
    /// one that was asked for a proof, and gives none, refuses ours.
    pub fn last_words(&self) -> Loss {
        match self.stage {
            Stage::Asked(_) if self.raw[..] == PREFACE => Loss::Refused(HelloError::Refused),
            _ => Loss::Closed,
        }
    }

    /// The connection carries frames of `from` from now on. Whoever accepted it says hello first.
    pub fn open(&mut self, from: Incarnation, reply: Option<&Hello>, encrypts: bool) {
        let stage = std::mem::replace(&mut self.stage, Stage::Unproven);
        let Stage::Proven(mut session) = stage else { panic!("only a proven link is opened") };
        if let Some(hello) = reply {
            self.out.push_slice(&session.seal(&greeting(hello, self.encrypts)));
        }
        if self.encrypts || encrypts {
            self.records = std::mem::take(&mut self.out);
            self.stage = Stage::Sealed(from, session);
        } else {
            self.input = std::mem::take(&mut self.raw);
            self.stage = Stage::Plain(from);
        }
    }

    /// Tells a host that has proven itself and is refused what is known of it, as far as that can
    /// be sent at once.
    pub fn answer(&mut self, reply: &Hello) {
        if let Stage::Proven(session) = &mut self.stage {
            self.out.push_slice(&session.seal(&greeting(reply, self.encrypts)));
            // If it is not taken, the other one connects again.
            drop(self.write());
        }
    }

    /// What is to be said next: how far this host has synced, and who has left if that is new.
    pub fn report(&mut self, synced: Lsn, left: &HashSet<NodeId>) -> Report {
        let is_new = self.left_said.replace(left.len()) != Some(left.len());
        let left = is_new.then_some(left).into_iter().flatten();
        Report::new(synced, left.copied())
    }

    /// Says how far this host has synced, and what else it has to say of itself.
    pub fn say(&mut self, me: Incarnation, to: NodeId, report: &Report) {
        self.out.push(progress::frame(me, to, report));
        self.said = Some((report.synced, Instant::now()));
    }

    /// Takes the frames that have arrived whole; those of lanes are `wanted` or dropped.
    pub fn frames(&mut self, wanted: Wanted, inputs: &mut Vec<Input>) -> Result<Arrived, Loss> {
        let from = match &mut self.stage {
            Stage::Plain(from) => *from,
            Stage::Sealed(from, session) => {
                let from = *from;
                unseal(session, &mut self.raw, &mut self.input)?;
                from
            }
            _ => return Ok(Arrived::default()),
        };
        let mut arrived = Arrived::default();
        while let Some(length) = frame_length(&self.input).map_err(|_| Loss::Garbage)? {
            if self.input.len() < length {
                break;
            }
            let frame = self.input.split_to(length).freeze();
            if frame_source(&frame) != Some(from) {
                arrived.foreign += 1;
            } else if progress::is_of_link(&frame) {
                let (_, report) = progress::read(frame).map_err(|_| Loss::Garbage)?;
                arrived.synced = Some(report.synced);
                arrived.left.extend(report.left);
            } else if wanted == Wanted::NoKeyspaces && progress::is_of_keyspace(&frame) {
                arrived.late += 1;
            } else if wanted != Wanted::None {
                inputs.push(Input::Frame(frame));
            }
        }
        Ok(arrived)
    }

    /// Writes as much as the socket takes.
    pub fn write(&mut self) -> std::io::Result<()> {
        let Stage::Sealed(_, session) = &mut self.stage else {
            return io::write(&mut self.stream, &mut self.out).map(drop);
        };
        while io::write(&mut self.stream, &mut self.records)? && !self.out.is_empty() {
            let mut plain = BytesMut::new();
            self.out.take(SEAL_BYTES, &mut plain);
            for piece in plain.chunks(RECORD_BYTES_MAX) {
                self.records.push(session.seal(piece));
            }
        }
        Ok(())
    }
}

fn greeting(hello: &Hello, encrypts: bool) -> [u8; GREETING_BYTES] {
    let mut bytes = [0; GREETING_BYTES];
    bytes[..HELLO_BYTES].copy_from_slice(&hello.to_bytes());
    bytes[HELLO_BYTES] = u8::from(encrypts);
    bytes
}

/// Opens all records that have arrived whole.
fn unseal(session: &mut Session, raw: &mut BytesMut, input: &mut BytesMut) -> Result<(), Loss> {
    while let Some(record) = proof::next(raw) {
        // A long frame gets its room at once.
        let length = frame_length(input).map_err(|_| Loss::Garbage)?.unwrap_or(0);
        let needed = length.saturating_sub(input.len()).max(record.len());
        if input.capacity() - input.len() < needed {
            input.reserve(needed.max(READ_BYTES));
        }
        session.open(&record, input).map_err(|_| Loss::Refused(HelloError::Broken))?;
    }
    Ok(())
}
