//! Sessions that clients of the native API have open at this host.
//!
//! A session is open as long as the stream that opened it is there. Every call for it shows its
//! password: whoever guesses the number of a session can do nothing with it. And it may say in
//! which opening of the session it is made: one that was on its way while the client went on with
//! the session is not to be done behind what the client has asked since.

use super::closing::Closing;
use super::told::{Opened, Told};
use super::words::{Shown, is_same};
use super::{failures, words};
use crate::native::problem::{self, Problem};
use crate::native::service::{Asking, Native};
use quorate_api::v1::{self, NodeFailure};
use quorate_kernel::ids::LaneId;
use quorate_kernel::mutant;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Act, Ask, Connect, Password, SessionId, Zxid};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
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
    /// Which opening it is, as the engine counts them.
    opening: u64,
    /// The same as this table counts them: one session may be opened again while its first stream
    /// goes.
    number: u64,
    /// Tells its stream that it was closed.
    close: oneshot::Sender<()>,
    /// Its client closes it: that it has ended is no error.
    is_closing: bool,
}

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

impl Sessions {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session is open; the number of the opening, and what tells when it was closed.
    fn insert(&self, name: Name, (password, opening): (Password, u64)) -> (u64, Closing) {
        let (close, closed) = oneshot::channel();
        let closed = Closing::new(closed);
        let mut table = self.table();
        table.count += 1;
        let number = table.count;
        // Its client may have gone on with it since.
        if table.open.get(&name).is_none_or(|open| open.opening <= opening) {
            table.open.insert(name, Open { password, opening, number, close, is_closing: false });
        }
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

    /// Its client begins to close it, or could not.
    fn set_closing(&self, name: Name, shown: &Password, is_closing: bool) {
        let mut table = self.table();
        if let Some(open) = table.open.get_mut(&name).filter(|it| is_same(&it.password, shown)) {
            open.is_closing = is_closing;
        }
    }

    /// Whether the client of a stream closes its session.
    fn is_closing(&self, name: Name, number: u64) -> bool {
        let table = self.table();
        table.open.get(&name).is_some_and(|open| open.number == number && open.is_closing)
    }

    /// In which opening something is asked for it, if it is open here, and the password is right,
    /// and the client has not resumed it since, and does not. A client that does has given up what
    /// it had asked before: that is not to be done behind what it asks then. The engine refuses
    /// what comes to it later than that. But that its client is there is so, whoever says it.
    fn admits(&self, lane: LaneId, shown: &Shown, is_ping: bool) -> Option<u64> {
        let (table, name) = (self.table(), (lane, shown.session));
        let open = table.open.get(&name).filter(|open| is_same(&open.password, &shown.password))?;
        let is_of_this = shown.opening.is_none_or(|opening| opening == open.opening);
        let is_in_time = is_of_this || mutant!("native_hears_earlier_openings");
        let is_heard = is_ping || (is_in_time && !table.resumed.contains_key(&name));
        is_heard.then_some(open.opening)
    }

    /// Its client resumes it. Who does not know the password holds up nobody.
    fn resume(&self, name: Name, shown: &Password) -> Option<Resuming<'_>> {
        let mut table = self.table();
        table.open.get(&name).filter(|open| is_same(&open.password, shown))?;
        *table.resumed.entry(name).or_default() += 1;
        Some(Resuming { sessions: self, name })
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
        if let Some(Shown { session, password, .. }) = &shown {
            self.sessions.set_closing((lane, *session), password, true);
        }
        let closed = self.for_session(&keyspace, session, Act::Close, asking).await;
        if let Some(Shown { session, password, .. }) = &shown {
            match &closed {
                Ok(_) => self.sessions.close((lane, *session)),
                Err(problem) if problem.kind() == v1::Kind::OutcomeUnknown => {}
                Err(_) => self.sessions.set_closing((lane, *session), password, false),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    const NAME: Name = (LaneId(7), SessionId(9));

    /// What a client shows that says nothing of an opening.
    fn shown(password: Password) -> Shown {
        Shown { session: NAME.1, password, opening: None }
    }

    #[test]
    fn a_session_is_admitted_by_its_password_as_long_as_it_is_open() {
        let sessions = Sessions::default();
        let admits = |password| sessions.admits(NAME.0, &shown(password), false);
        assert_eq!(admits([1; 16]), None, "it is not open");
        let (first, mut told_first) = sessions.insert(NAME, ([1; 16], 7));
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(admits([1; 16]), Some(7));
        for place in 0..16 {
            let mut wrong = [1; 16];
            wrong[place] = 2;
            assert_eq!(admits(wrong), None, "{place}");
        }
        let other = sessions.admits(LaneId(8), &shown([1; 16]), true);
        assert_eq!(other, None, "another keyspace's");
        let (second, mut told_second) = sessions.insert(NAME, ([1; 16], 8));
        for _ in 0..3 {
            assert!(told_first.poll(&mut cx).is_pending(), "it was opened again, not closed");
        }
        sessions.remove(NAME, first);
        assert_eq!(admits([1; 16]), Some(8), "it was opened again");
        assert!(told_second.poll(&mut cx).is_pending());
        sessions.close(NAME);
        assert!(told_second.poll(&mut cx).is_ready() && admits([1; 16]).is_none());
        sessions.remove(NAME, second);
    }

    #[test]
    fn nothing_is_asked_for_a_session_while_it_is_resumed_but_its_client_is_there() {
        let sessions = Sessions::default();
        let admits = || sessions.admits(NAME.0, &shown([1; 16]), false).is_some();
        let is_heard = |password| sessions.admits(NAME.0, &shown(password), true).is_some();
        assert!(sessions.resume(NAME, &[1; 16]).is_none(), "it is not open here");
        let (first, _told_first) = sessions.insert(NAME, ([1; 16], 1));
        assert!(sessions.resume(NAME, &[2; 16]).is_none() && admits());
        let (one, two) = (sessions.resume(NAME, &[1; 16]), sessions.resume(NAME, &[1; 16]));
        assert!(one.is_some() && two.is_some() && !admits());
        assert!(is_heard([1; 16]) && !is_heard([2; 16]), "who knows the password is its client");
        drop(one);
        let (_second, _told_second) = sessions.insert(NAME, ([1; 16], 2));
        sessions.remove(NAME, first);
        assert!(!admits(), "it is resumed once more");
        drop(two);
        assert!(admits());
        drop(sessions.resume(NAME, &[1; 16]));
        assert!(admits(), "who could not resume it has it yet");
    }

    #[test]
    fn what_a_client_asked_before_it_went_on_with_its_session_is_not_admitted_behind_that() {
        let sessions = Sessions::default();
        let admits = |opening, is_ping| {
            sessions.admits(NAME.0, &Shown { opening, ..shown([1; 16]) }, is_ping)
        };
        let (first, _told_first) = sessions.insert(NAME, ([1; 16], 7));
        assert_eq!(admits(Some(7), false), Some(7));
        drop(sessions.resume(NAME, &[1; 16]));
        let (_second, _told_second) = sessions.insert(NAME, ([1; 16], 8));
        sessions.remove(NAME, first);
        assert_eq!(admits(Some(7), false), None, "it was on its way meanwhile");
        assert_eq!(admits(Some(7), true), Some(8), "but its client is there");
        assert_eq!([admits(Some(8), false), admits(None, false)], [Some(8); 2]);
        assert_eq!(admits(Some(9), false), None, "nobody was told of such an opening");
    }

    #[test]
    fn that_a_session_ends_which_its_client_closes_is_no_error() {
        let sessions = Sessions::default();
        let (first, _told_first) = sessions.insert(NAME, ([1; 16], 1));
        sessions.set_closing(NAME, &[2; 16], true);
        assert!(!sessions.is_closing(NAME, first), "anybody says so");
        sessions.set_closing(NAME, &[1; 16], true);
        assert!(sessions.is_closing(NAME, first));
        sessions.set_closing(NAME, &[1; 16], false);
        assert!(!sessions.is_closing(NAME, first), "it could not");
        sessions.set_closing(NAME, &[1; 16], true);
        let (second, _told_second) = sessions.insert(NAME, ([1; 16], 2));
        assert!(!sessions.is_closing(NAME, first) && !sessions.is_closing(NAME, second));
    }
}
