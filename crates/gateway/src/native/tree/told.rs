//! What the engine tells of a session, one after the other.

use super::failures;
use crate::native::problem::{self, Problem};
use crate::native::service::{GRACE, Native};
use quorate_host::{Happened, Served};
use quorate_kernel::tree::{Connect, Failure, Password, SessionEvent, SessionId};
use quorate_kernel::watch::{Event, Watch};
use std::collections::VecDeque;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout_at;

/// What is told of a session, from the moment on at which it was asked for.
pub struct SessionEvents {
    from: Receiver<Happened>,
    /// What came together with what was told last.
    waiting: VecDeque<SessionEvent>,
    is_over: bool,
}

/// A session that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    pub session: SessionId,
    pub password: Password,
    pub timeout_ms: u32,
    /// Which opening of it this is.
    pub opening: u64,
}

impl Native {
    /// Asks for a session and waits until it is open.
    pub(super) async fn open(
        &self,
        keyspace: &Served,
        connect: Connect,
    ) -> Result<(SessionEvents, Opened), Problem> {
        let watch = Watch::Session(connect);
        let begun = self.calls.watch(keyspace.keyspace().lane, watch);
        let from = begun.map_err(|refusal| problem::refused(&refusal))?;
        let mut told = SessionEvents { from, waiting: VecDeque::new(), is_over: false };
        let deadline = tokio::time::Instant::now() + self.timeout() + GRACE;
        let first = std::future::poll_fn(|cx| told.poll(cx));
        match timeout_at(deadline, first).await {
            Ok(Some(Ok(SessionEvent::Open { session, password, timeout_ms, opening }))) => {
                Ok((told, Opened { session, password, timeout_ms, opening }))
            }
            Ok(Some(Err(problem))) => Err(problem),
            Ok(_) => Err(problem::mismatch()),
            // Whoever opens it is not there any more: it expires by itself.
            Err(_) => Err(problem::no_answer()),
        }
    }
}

impl SessionEvents {
    /// What is told next. An error is the end of it.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<SessionEvent, Problem>>> {
        loop {
            match self.waiting.pop_front() {
                Some(SessionEvent::Expired) => {
                    self.is_over = true;
                    let why = failures::problem(Failure::SessionExpired);
                    return Poll::Ready(Some(Err(why)));
                }
                _ if self.is_over => return Poll::Ready(None),
                Some(event) => return Poll::Ready(Some(Ok(event))),
                None => {}
            }
            let ended = match ready!(self.from.poll_recv(cx)) {
                Some(Ok(events)) => {
                    self.waiting.extend(events.into_iter().filter_map(|event| match event {
                        Event::Session(event) => Some(event),
                        _ => None,
                    }));
                    continue;
                }
                Some(Err(refusal)) => problem::refused(&refusal),
                // The host has ended.
                None => problem::stopping(),
            };
            self.is_over = true;
            return Poll::Ready(Some(Err(ended)));
        }
    }
}

/// How often the client of a session that may be silent for so long has to be heard.
pub fn heard_every(timeout_ms: u32, at_most: Duration) -> Duration {
    (Duration::from_millis(timeout_ms.into()) / 3).clamp(Duration::from_millis(1), at_most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_api::v1::{Kind, NodeFailure};
    use quorate_kernel::operation::Refusal;
    use tokio::sync::mpsc::channel;

    async fn next(told: &mut SessionEvents) -> Option<Result<SessionEvent, Problem>> {
        std::future::poll_fn(|cx| told.poll(cx)).await
    }

    fn told(from: Receiver<Happened>) -> SessionEvents {
        SessionEvents { from, waiting: VecDeque::new(), is_over: false }
    }

    #[tokio::test]
    async fn what_is_told_comes_one_by_one_and_an_error_says_why_it_ends() {
        let (session, password) = (SessionId(7), [1; 16]);
        let open = SessionEvent::Open { session, password, timeout_ms: 9, opening: 1 };
        for (last, kind, failure) in [
            (Err(Refusal::TooSlow), Kind::Overloaded, NodeFailure::Unspecified),
            (Err(Refusal::NoSession), Kind::Conflict, NodeFailure::SessionMoved),
            (
                Ok(vec![Event::Session(SessionEvent::Expired)]),
                Kind::Conflict,
                NodeFailure::SessionExpired,
            ),
        ] {
            let (to, from) = channel(4);
            let event = Event::Session(open.clone());
            to.try_send(Ok(vec![event.clone(), Event::Current, event])).expect("room");
            to.try_send(last).expect("room");
            let mut told = told(from);
            for _ in 0..2 {
                assert_eq!(next(&mut told).await, Some(Ok(open.clone())));
            }
            let Some(Err(why)) = next(&mut told).await else { panic!("it has ended") };
            assert_eq!((why.kind(), why.node_failure()), (kind, failure));
            assert!(next(&mut told).await.is_none());
        }
        let (to, from) = channel::<Happened>(4);
        drop(to);
        let Some(Err(why)) = next(&mut told(from)).await else { panic!("it has ended") };
        assert_eq!(why.kind(), Kind::Stopping);
    }

    #[test]
    fn a_client_is_heard_three_times_before_it_counts_as_silent() {
        let most = Duration::from_secs(15);
        assert_eq!(heard_every(6_000, most), Duration::from_secs(2));
        assert_eq!(heard_every(60_000, most), most);
    }
}
