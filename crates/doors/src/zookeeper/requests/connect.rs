//! How a connection begins: a client asks for a session, new or its own, and is told which it has.

use crate::zookeeper::wire::jute::{Frame, Malformed, Reader};
use core::net::SocketAddr;
use quorate_kernel::tree::{Connect, Password, SessionId, Zxid};

/// What a client asks first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectRequest {
    /// What it asks of the engine.
    pub connect: Connect,
    /// It shows as its password what can be none, so the session that it names is not its own.
    pub is_stranger: bool,
    /// It knows of hosts that only read, and so does its reader of the answer: clients from before
    /// 3.4, and Go's, do not.
    pub knows_read_only: bool,
}

impl ConnectRequest {
    /// Reads it out of its frame. The version of the protocol has always been 0, and whether the
    /// client would make do with a host that only reads does not matter: no host is one.
    pub fn read(frame: &[u8], peer: &str) -> Result<ConnectRequest, Malformed> {
        let mut reader = Reader::new(frame);
        let _protocol_version = reader.int()?;
        let seen = reader.long()?;
        let timeout_ms = reader.int()?;
        let session = reader.long()?;
        let password = reader.buffer()?.unwrap_or_default();
        let knows_read_only = reader.boolean().is_ok();
        let shown = Password::try_from(password);
        let is_stranger = session != 0 && shown.is_err();
        let session = (session != 0).then_some(SessionId(session.cast_unsigned()));
        let connect = Connect {
            session: session.zip(shown.ok()),
            timeout_ms: timeout_ms.max(0).unsigned_abs(),
            seen: zxid(seen),
            peer: peer.parse().ok().map(|address: SocketAddr| address.ip()),
        };
        Ok(ConnectRequest { connect, is_stranger, knows_read_only })
    }
}

/// A zxid as clients say it; one below 0 says nothing.
pub(crate) fn zxid(said: i64) -> Zxid {
    Zxid(said.max(0).unsigned_abs())
}

/// The client has a session.
pub(crate) fn opened(
    session: SessionId,
    password: &Password,
    timeout_ms: u32,
    knows_read_only: bool,
) -> Frame {
    let timeout_ms = i32::try_from(timeout_ms).unwrap_or(i32::MAX);
    response(timeout_ms, session, password, knows_read_only)
}

/// The session that the client wants to go on with is not there, or not its own: some know it by
/// the time-out, some by the id.
pub(crate) fn expired(knows_read_only: bool) -> Frame {
    response(0, SessionId(0), &[0; 16], knows_read_only)
}

fn response(
    timeout_ms: i32,
    session: SessionId,
    password: &Password,
    knows_read_only: bool,
) -> Frame {
    let mut frame = Frame::new();
    frame.int(0);
    frame.int(timeout_ms);
    frame.long(session.0.cast_signed());
    frame.buffer(password);
    if knows_read_only {
        frame.boolean(false);
    }
    frame
}
