//! The client's side of the wire, as far as it is needed to read a tree: requests as frames, and
//! answers out of the bytes of a connection. For the command line, which copies trees.

use super::wire::codes::{EVENT_XID, opcode};
use super::wire::jute::{Frame, Malformed, Reader};
use alloc::string::String;
use alloc::vec::Vec;
use bytes::{Buf, Bytes, BytesMut};
use quorate_kernel::rope::Rope;
use quorate_kernel::tree::{Acl, Id, Kind, SessionId, Stat, Zxid};
use thiserror::Error;

/// The longest answer in bytes: a listing of a node with millions of children is no longer.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The number of a request that shows who the client is, by which its answer is known.
pub const AUTH_XID: i32 = -4;

/// What is read of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeQuestion {
    /// What a node has. [`ServerAnswer::data`].
    Data(String),
    /// The names of its children. [`ServerAnswer::children`].
    Children(String),
    /// Who may do what with it. [`ServerAnswer::acl`].
    Acl(String),
    /// Who the client is: a scheme and a credential. Its number is [`AUTH_XID`].
    Authenticate(String, Bytes),
    /// The session ends.
    Close,
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The first of a connection: there is a session.
    Connected {
        /// Which.
        session: SessionId,
        /// How long its client may be silent, in milliseconds; 0 if there is none.
        timeout_ms: u32,
    },
    /// A question was answered.
    Answer(ServerAnswer),
    /// Something that is watched has changed.
    Event,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAnswer {
    /// The question's number.
    pub xid: i32,
    /// 0 if it was answered; else ZooKeeper's number of the error.
    pub code: i32,
    body: Bytes,
}

/// A server has sent what is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the server has sent what no server of ZooKeeper sends")]
pub struct Nonsense;

impl From<Malformed> for Nonsense {
    fn from(_: Malformed) -> Nonsense {
        Nonsense
    }
}

fn bytes(frame: Frame) -> Bytes {
    let mut out = Rope::default();
    frame.send(&mut out);
    out.to_bytes()
}

/// Asks for a session: the first bytes of a connection.
#[must_use]
pub fn connect(timeout_ms: u32) -> Bytes {
    let mut frame = Frame::new();
    frame.int(0);
    frame.long(0);
    frame.int(i32::try_from(timeout_ms).unwrap_or(i32::MAX));
    frame.long(0);
    frame.buffer(&[0; 16]);
    frame.boolean(false);
    bytes(frame)
}

/// A question as bytes; its number must be above 0, but for [`NodeQuestion::Authenticate`].
#[must_use]
pub fn request(xid: i32, question: &NodeQuestion) -> Bytes {
    let mut frame = Frame::new();
    let mut about = |opcode: i32, path: &str| {
        frame.int(xid);
        frame.int(opcode);
        frame.string(path);
    };
    match question {
        NodeQuestion::Data(path) => {
            about(opcode::GET_DATA, path);
            frame.boolean(false);
        }
        NodeQuestion::Children(path) => {
            about(opcode::GET_CHILDREN, path);
            frame.boolean(false);
        }
        NodeQuestion::Acl(path) => about(opcode::GET_ACL, path),
        NodeQuestion::Authenticate(scheme, credential) => {
            frame.int(AUTH_XID);
            frame.int(opcode::AUTH);
            frame.int(0);
            frame.string(scheme);
            frame.buffer(credential);
        }
        NodeQuestion::Close => {
            frame.int(xid);
            frame.int(opcode::CLOSE_SESSION);
        }
    }
    bytes(frame)
}

/// Takes what a server has said from the front of what came, if it is whole; `is_first` until the
/// connection has its session.
///
/// # Errors
/// It is nothing that a server says. Where the next begins is not known.
pub fn next(input: &mut BytesMut, is_first: bool) -> Result<Option<Said>, Nonsense> {
    let Some(first) = input.first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(i32::from_be_bytes(*first)).map_err(|_| Nonsense)?;
    if length > ANSWER_BYTES_MAX {
        return Err(Nonsense);
    }
    if input.len() < 4 + length {
        return Ok(None);
    }
    input.advance(4);
    let mut frame = input.split_to(length).freeze();
    if is_first {
        let mut reader = Reader::new(&frame);
        let (_protocol_version, timeout_ms) = (reader.int()?, reader.int()?);
        let session = SessionId(reader.long()?.cast_unsigned());
        let timeout_ms = timeout_ms.max(0).unsigned_abs();
        return Ok(Some(Said::Connected { session, timeout_ms }));
    }
    const HEADER_BYTES: usize = 16;
    let mut reader = Reader::new(&frame);
    let (xid, _zxid, code) = (reader.int()?, reader.long()?, reader.int()?);
    if xid == EVENT_XID {
        return Ok(Some(Said::Event));
    }
    frame.advance(HEADER_BYTES);
    Ok(Some(Said::Answer(ServerAnswer { xid, code, body: frame })))
}

impl ServerAnswer {
    /// What a node has, and how it is.
    ///
    /// # Errors
    /// It is no answer to [`NodeQuestion::Data`].
    pub fn data(&self) -> Result<(Option<Bytes>, Stat), Nonsense> {
        let mut reader = Reader::new(&self.body);
        let data = reader.buffer()?.map(|data| self.body.slice_ref(data));
        Ok((data, stat(&mut reader)?))
    }

    /// The names of a node's children.
    ///
    /// # Errors
    /// It is no answer to [`NodeQuestion::Children`].
    pub fn children(&self) -> Result<Vec<String>, Nonsense> {
        Reader::new(&self.body).vector(|reader| reader.string()?.ok_or(Nonsense))
    }

    /// Who may do what with a node.
    ///
    /// # Errors
    /// It is no answer to [`NodeQuestion::Acl`].
    pub fn acl(&self) -> Result<Vec<Acl>, Nonsense> {
        Reader::new(&self.body).vector(|reader| {
            let permissions = reader.int()?.cast_unsigned();
            let scheme = reader.string()?.unwrap_or_default();
            let id = reader.string()?.unwrap_or_default();
            Ok(Acl { permissions, id: Id { scheme, id } })
        })
    }
}

fn stat(reader: &mut Reader<'_>) -> Result<Stat, Malformed> {
    let zxid = |reader: &mut Reader<'_>| reader.long().map(|zxid| Zxid(zxid.cast_unsigned()));
    Ok(Stat {
        czxid: zxid(reader)?,
        mzxid: zxid(reader)?,
        ctime: reader.long()?,
        mtime: reader.long()?,
        version: reader.int()?,
        cversion: reader.int()?,
        aversion: reader.int()?,
        ephemeral_owner: SessionId(reader.long()?.cast_unsigned()),
        data_length: reader.int()?.max(0).unsigned_abs(),
        children: reader.int()?.max(0).unsigned_abs(),
        pzxid: zxid(reader)?,
    })
}

/// Which kind of node has such an owner, as ZooKeeper's servers tell it: containers and nodes with
/// a time to live have owners that are no sessions.
#[must_use]
pub fn kind(owner: SessionId) -> Kind {
    const CONTAINER: u64 = 1 << 63;
    const TTL: u64 = 0xff << 56;
    const TTL_MS: u64 = (1 << 40) - 1;
    match owner.0 {
        0 => Kind::Persistent,
        CONTAINER => Kind::Container,
        ttl if ttl & TTL == TTL => Kind::Ttl(ttl & TTL_MS),
        _ => Kind::Ephemeral,
    }
}

/// The word for an error, as ZooKeeper's clients have it.
#[must_use]
pub fn error(code: i32) -> &'static str {
    match code {
        -4 => "ConnectionLoss",
        -5 => "MarshallingError",
        -6 => "Unimplemented",
        -7 => "OperationTimeout",
        -8 => "BadArguments",
        NO_NODE => "NoNode",
        -102 => "NoAuth",
        -112 => "SessionExpired",
        -115 => "AuthFailed",
        -118 => "SessionMoved",
        _ => "SystemError",
    }
}

/// There is no such node.
pub const NO_NODE: i32 = -101;
