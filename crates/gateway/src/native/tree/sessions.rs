//! Sessions that clients of the native API have open at this host.
//!
//! A session is open as long as the stream that opened it is there. Every call for it shows its
//! password: whoever guesses the number of a session can do nothing with it. Which are open is in
//! [`super::table`].

use super::closing::Closing;
use super::table::Name;
use super::told::{Opened, SessionEvents};
use super::words::Shown;
use super::{failures, words};
use crate::native::problem::{self, Problem};
use crate::native::service::{Asking, Native};
use quorate_api::v1::{self, NodeFailure};
use quorate_kernel::ids::LaneId;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Act, Ask, Connect, SessionId, Zxid};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Interval, interval};
use tokio_stream::Stream;

/// How long a client may be silent that does not say.
pub(super) const TIMEOUT_MS: u32 = 10_000;
/// How often a stream with nothing to tell moves, so that a door takes it for no stalled answer.
pub(super) const MOVES_EVERY: Duration = Duration::from_secs(15);

/// For which session something is asked, if for one, and in which opening of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Whose {
    session: Option<SessionId>,
    opening: Option<u64>,
}

impl Whose {
    /// What is asked of the engine.
    pub fn asks(self, act: Act) -> Operation {
        let Whose { session, opening } = self;
        Operation::Tree(Box::new(Ask { session, opening, act }))
    }
}

impl Native {
    /// The session that a request is for, if it is for one.
    pub(super) fn session_of(
        &self,
        lane: LaneId,
        shown: Option<&v1::Session>,
        is_ping: bool,
    ) -> Result<Whose, Problem> {
        let Some(shown) = shown else { return Ok(Whose::default()) };
        let shown = words::session(shown)?;
        match self.sessions.admits(lane, &shown, is_ping) {
            Some(opening) => Ok(Whose { session: Some(shown.session), opening: Some(opening) }),
            None => Err(failures::not_here()),
        }
    }

    /// `Tree.OpenSession`.
    ///
    /// # Errors
    /// The session was not opened, or has expired.
    pub async fn open_session(
        &self,
        request: v1::OpenSessionRequest,
    ) -> Result<SessionStream, Problem> {
        let keyspace = self.find_tree(&request.keyspace)?;
        let shown = request.resume.as_ref().map(words::session).transpose()?;
        let session = shown.map(|shown| (shown.session, shown.password));
        let timeout_ms = match request.session_timeout_ms {
            0 => TIMEOUT_MS,
            timeout_ms => timeout_ms,
        };
        let lane = keyspace.keyspace().lane;
        let resuming = session
            .as_ref()
            .and_then(|(session, password)| self.sessions.resume((lane, *session), password));
        let connect = Connect { session, timeout_ms, seen: Zxid(0), peer: None };
        let (told, opened) = self.open(&keyspace, connect).await?;
        let name = (lane, opened.session);
        let (number, closed) = self.sessions.insert(name, (opened.password, opened.opening));
        drop(resuming);
        let native = self.clone();
        let moves = interval(MOVES_EVERY);
        Ok(SessionStream { native, told, name, number, closed, moves, first: Some(opened) })
    }

    /// `Tree.KeepAlive`.
    ///
    /// # Errors
    /// The session is not open here.
    pub async fn keep_alive(
        &self,
        request: v1::KeepAliveRequest,
        asking: &Asking,
    ) -> Result<v1::KeepAliveResponse, Problem> {
        let v1::KeepAliveRequest { keyspace, session } = request;
        self.for_session(&keyspace, session, Act::Ping, asking).await?;
        Ok(v1::KeepAliveResponse {})
    }

    /// `Tree.Authenticate`.
    ///
    /// # Errors
    /// The session is not open here, or the credential is not valid.
    pub async fn authenticate(
        &self,
        request: v1::AuthenticateRequest,
        asking: &Asking,
    ) -> Result<v1::AuthenticateResponse, Problem> {
        let v1::AuthenticateRequest { keyspace, session, scheme, credential } = request;
        let act = Act::Authenticate { scheme, credential };
        self.for_session(&keyspace, session, act, asking).await?;
        Ok(v1::AuthenticateResponse {})
    }

    /// `Tree.CloseSession`.
    ///
    /// # Errors
    /// The session is not open here, or nobody can say whether it was closed.
    pub async fn close_session(
        &self,
        request: v1::CloseSessionRequest,
        asking: &Asking,
    ) -> Result<v1::CloseSessionResponse, Problem> {
        let v1::CloseSessionRequest { keyspace, session } = request;
        let lane = self.find_tree(&keyspace)?.keyspace().lane;
        let shown = session.as_ref().map(words::session).transpose()?;
        // Also if nobody waits for the answer any more.
        let begun = shown.as_ref().and_then(|shown| self.sessions.begin_closing(lane, shown));
        let closed = self.for_session(&keyspace, session, Act::Close, asking).await;
        if let Some(Shown { session, .. }) = shown {
            let name = (lane, session);
            match (&closed, begun) {
                (Ok(_), _) => self.sessions.close(name),
                (Err(problem), _) if problem.kind() == v1::Kind::OutcomeUnknown => {}
                (Err(_), Some(number)) => self.sessions.fail_closing(name, number),
                (Err(_), None) => {}
            }
        }
        Ok(v1::CloseSessionResponse { zxid: closed? })
    }

    /// Does something that only the client of a session can ask; the newest change by then.
    async fn for_session(
        &self,
        keyspace: &str,
        session: Option<v1::Session>,
        act: Act,
        asking: &Asking,
    ) -> Result<u64, Problem> {
        if session.is_none() {
            let right = "open one by Tree.OpenSession, and show it";
            return Err(problem::invalid("session", "no session is given", right));
        }
        let options = v1::WriteOptions::default();
        let (reply, _) = self.ask_tree(keyspace, session.as_ref(), act, &options, asking).await?;
        Ok(reply.zxid.0)
    }
}

/// A session as its client has it: first which it is, then nothing until it ends.
pub struct SessionStream {
    native: Native,
    told: SessionEvents,
    name: Name,
    number: u64,
    closed: Closing,
    moves: Interval,
    first: Option<Opened>,
}

impl Stream for SessionStream {
    type Item = Result<v1::OpenSessionResponse, Problem>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while self.moves.poll_tick(cx).is_ready() {}
        if let Some(Opened { session, password, timeout_ms, opening }) = self.first.take() {
            let password = bytes::Bytes::copy_from_slice(&password);
            return Poll::Ready(Some(Ok(v1::OpenSessionResponse {
                session: Some(v1::Session { id: session.0, password, opening }),
                session_timeout_ms: timeout_ms,
                coordinator: Some(self.native.me()),
            })));
        }
        if self.closed.poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        loop {
            match self.told.poll(cx) {
                Poll::Pending => return Poll::Pending,
                // Nothing is followed.
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(problem))) => {
                    let is_over = problem.node_failure() == NodeFailure::SessionExpired;
                    let is_closed =
                        is_over && self.native.sessions.is_closing(self.name, self.number);
                    return Poll::Ready((!is_closed).then_some(Err(problem)));
                }
                Poll::Ready(None) => return Poll::Ready(None),
            }
        }
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        self.native.sessions.remove(self.name, self.number);
    }
}
