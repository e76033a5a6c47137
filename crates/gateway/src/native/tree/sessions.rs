//! Sessions that clients of the native API have open at this host.
//!
//! A session is open as long as the stream that opened it is there. Every call for it shows its
//! password: whoever guesses the number of a session can do nothing with it.

use super::told::{Opened, Told};
use super::{failures, words};
use crate::native::problem::{self, Problem};
use crate::native::service::{Asking, Native};
use quorate_api::v1;
use quorate_kernel::ids::LaneId;
use quorate_kernel::tree::{Act, Connect, Password, SessionId, Zxid};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Interval, interval};
use tokio_stream::Stream;

/// How long a client may be silent that does not say.
pub(super) const TIMEOUT_MS: u32 = 10_000;
/// How often a stream with nothing to tell moves, so that a door takes it for no stalled answer.
pub(super) const MOVES_EVERY: Duration = Duration::from_secs(15);

type Name = (LaneId, SessionId);

/// The sessions that are open.
#[derive(Default)]
pub struct Sessions {
    all: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: BTreeMap<Name, Open>,
    /// How often each is being resumed.
    resumed: BTreeMap<Name, u32>,
    /// How many were opened since the start.
    count: u64,
}

struct Open {
    password: Password,
    /// Which opening it is: one session may be opened again while its first stream goes.
    number: u64,
    /// Tells its stream that it was closed.
    close: oneshot::Sender<()>,
}

impl Sessions {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session is open; the number of the opening, and what tells when it was closed.
    fn insert(&self, name: Name, password: Password) -> (u64, Closing) {
        let (close, closed) = oneshot::channel();
        let closed = Closing(Some(closed));
        let mut table = self.table();
        table.count += 1;
        let number = table.count;
        table.open.insert(name, Open { password, number, close });
        (number, closed)
    }

    /// Its stream is gone.
    fn remove(&self, name: Name, number: u64) {
        let mut table = self.table();
        if table.open.get(&name).is_some_and(|open| open.number == number) {
            table.open.remove(&name);
        }
    }

    /// It was closed.
    fn close(&self, name: Name) {
        if let Some(open) = self.table().open.remove(&name) {
            // Its stream may be gone.
            let _ = open.close.send(());
        }
    }

    /// Whether it is open here, and the password is right, and its client does not resume it. A
    /// client that does has given up what it had asked before: that is not to be done behind what
    /// it asks then.
    fn admits(&self, name: Name, shown: &Password) -> bool {
        let table = self.table();
        let is_open = table.open.get(&name).is_some_and(|open| is_same(&open.password, shown));
        is_open && !table.resumed.contains_key(&name)
    }

    /// Its client resumes it. Who does not know the password holds up nobody.
    fn resume(&self, name: Name, shown: &Password) -> Option<Resuming<'_>> {
        let mut table = self.table();
        table.open.get(&name).filter(|open| is_same(&open.password, shown))?;
        *table.resumed.entry(name).or_default() += 1;
        Some(Resuming { sessions: self, name })
    }
}

/// Tells the stream of a session when that is closed; never, if it is opened again before.
struct Closing(Option<oneshot::Receiver<()>>);

impl Closing {
    /// Whether the session was closed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(told) = &mut self.0 else { return Poll::Pending };
        let told = ready!(Pin::new(told).poll(cx));
        // It has said all, and must not be asked again.
        self.0 = None;
        match told {
            Ok(()) => Poll::Ready(()),
            Err(_) => Poll::Pending,
        }
    }
}

/// A session that is open here and is being resumed: nothing is asked for it meanwhile.
struct Resuming<'a> {
    sessions: &'a Sessions,
    name: Name,
}

impl Drop for Resuming<'_> {
    fn drop(&mut self) {
        let mut table = self.sessions.table();
        if let Some(count) = table.resumed.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                table.resumed.remove(&self.name);
            }
        }
    }
}

/// Whether two passwords are the same, in a time that does not tell where they differ.
fn is_same(one: &Password, other: &Password) -> bool {
    one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other)) == 0
}

impl Native {
    /// The session that a request is for, if it is for one.
    pub(super) fn session_of(
        &self,
        lane: LaneId,
        shown: Option<&v1::Session>,
    ) -> Result<Option<SessionId>, Problem> {
        let Some(shown) = shown else { return Ok(None) };
        let (session, password) = words::session(shown)?;
        match self.sessions.admits((lane, session), &password) {
            true => Ok(Some(session)),
            false => Err(failures::not_here()),
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
        let session = request.resume.as_ref().map(words::session).transpose()?;
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
        let (number, closed) = self.sessions.insert(name, opened.password);
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
        let zxid = self.for_session(&keyspace, session, Act::Close, asking).await?;
        if let Some((session, _)) = shown {
            self.sessions.close((lane, session));
        }
        Ok(v1::CloseSessionResponse { zxid })
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
    told: Told,
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
        if let Some(Opened { session, password, timeout_ms }) = self.first.take() {
            return Poll::Ready(Some(Ok(v1::OpenSessionResponse {
                session: Some(v1::Session {
                    id: session.0,
                    password: bytes::Bytes::copy_from_slice(&password),
                }),
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
                Poll::Ready(Some(Err(problem))) => return Poll::Ready(Some(Err(problem))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    const NAME: Name = (LaneId(7), SessionId(9));

    #[test]
    fn a_session_is_admitted_by_its_password_as_long_as_it_is_open() {
        let sessions = Sessions::default();
        assert!(!sessions.admits(NAME, &[1; 16]), "it is not open");
        let (first, mut told_first) = sessions.insert(NAME, [1; 16]);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(sessions.admits(NAME, &[1; 16]));
        for place in 0..16 {
            let mut wrong = [1; 16];
            wrong[place] = 2;
            assert!(!sessions.admits(NAME, &wrong), "{place}");
        }
        assert!(!sessions.admits((LaneId(8), NAME.1), &[1; 16]), "another keyspace's");
        let (second, mut told_second) = sessions.insert(NAME, [1; 16]);
        for _ in 0..3 {
            assert!(told_first.poll(&mut cx).is_pending(), "it was opened again, not closed");
        }
        sessions.remove(NAME, first);
        assert!(sessions.admits(NAME, &[1; 16]), "it was opened again");
        assert!(told_second.poll(&mut cx).is_pending());
        sessions.close(NAME);
        assert!(told_second.poll(&mut cx).is_ready() && !sessions.admits(NAME, &[1; 16]));
        sessions.remove(NAME, second);
    }

    #[test]
    fn nothing_is_asked_for_a_session_while_it_is_resumed() {
        let sessions = Sessions::default();
        assert!(sessions.resume(NAME, &[1; 16]).is_none(), "it is not open here");
        let (first, _told_first) = sessions.insert(NAME, [1; 16]);
        assert!(sessions.resume(NAME, &[2; 16]).is_none() && sessions.admits(NAME, &[1; 16]));
        let (one, two) = (sessions.resume(NAME, &[1; 16]), sessions.resume(NAME, &[1; 16]));
        assert!(one.is_some() && two.is_some() && !sessions.admits(NAME, &[1; 16]));
        drop(one);
        let (_second, _told_second) = sessions.insert(NAME, [1; 16]);
        sessions.remove(NAME, first);
        assert!(!sessions.admits(NAME, &[1; 16]), "it is resumed once more");
        drop(two);
        assert!(sessions.admits(NAME, &[1; 16]));
        drop(sessions.resume(NAME, &[1; 16]));
        assert!(sessions.admits(NAME, &[1; 16]), "who could not resume it has it yet");
    }
}
