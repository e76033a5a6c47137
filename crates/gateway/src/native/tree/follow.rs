//! A node that is followed, as a stream that both doors hand on.
//!
//! The stream has a session of its own, which it keeps alive as long as it is taken from, and
//! closes when it goes.

use super::sessions::{MOVES_EVERY, TIMEOUT_MS};
use super::told::{SessionEvents, heard_every};
use crate::native::problem::{self, Problem};
use crate::native::service::{Asking, Native};
use quorate_api::v1;
use quorate_host::{Call, Served};
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Act, Ask, Changed, Connect, SessionEvent, SessionId, Zxid};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::time::{Interval, interval};
use tokio_stream::Stream;

/// The word of the first message.
pub const WATCHING: &str = "watching";

/// What becomes of a node, one after the other, until the client goes, or an error says why it
/// ends.
pub struct Changes {
    owner: Owner,
    told: SessionEvents,
    alive: Interval,
    first: Option<v1::WatchNodeResponse>,
}

/// Closes the session of a stream when that goes.
struct Owner {
    native: Native,
    keyspace: Arc<Served>,
    session: SessionId,
}

impl Owner {
    /// Says something for the session; nobody waits for the answer.
    fn say(&self, act: Act) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let operation =
            Operation::Tree(Box::new(Ask { session: Some(self.session), opening: None, act }));
        let deadline = Instant::now() + self.native.timeout();
        let keyspace = Arc::clone(&self.keyspace);
        let call = Call { keyspace, operation, deadline, named: None };
        let calls = Arc::clone(&self.native.calls);
        runtime.spawn(async move { drop(calls.call(call).await) });
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.say(Act::Close);
    }
}

impl Native {
    /// `Tree.Watch`: what becomes of a node from now on.
    ///
    /// # Errors
    /// It cannot be followed.
    pub async fn watch_node(
        &self,
        request: v1::WatchNodeRequest,
        asking: &Asking,
    ) -> Result<Changes, Problem> {
        let v1::WatchNodeRequest { keyspace, path, recursive } = request;
        let keyspace = self.find_tree(&keyspace)?;
        super::check_path(&path)?;
        let connect = Connect { session: None, timeout_ms: TIMEOUT_MS, seen: Zxid(0), peer: None };
        let (told, opened) = self.open(&keyspace, connect).await?;
        let owner = Owner {
            native: self.clone(),
            keyspace: Arc::clone(&keyspace),
            session: opened.session,
        };
        let act = Act::Follow { path: path.clone(), recursive };
        let deadline = self.deadline(0, asking);
        let reply = self.ask_for(&keyspace, Some(opened.session), act, deadline).await?;
        let first = v1::WatchNodeResponse { event: WATCHING.into(), path, zxid: reply.zxid.0 };
        let alive = interval(heard_every(opened.timeout_ms, MOVES_EVERY));
        Ok(Changes { owner, told, alive, first: Some(first) })
    }
}

impl Stream for Changes {
    type Item = Result<v1::WatchNodeResponse, Problem>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut is_time = false;
        while self.alive.poll_tick(cx).is_ready() {
            is_time = true;
        }
        if is_time {
            self.owner.say(Act::Ping);
        }
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        Poll::Ready(match ready!(self.told.poll(cx)) {
            Some(Ok(SessionEvent::Changed(changed))) => Some(Ok(told(changed))),
            Some(Ok(_)) => Some(Err(problem::mismatch())),
            Some(Err(problem)) => Some(Err(problem)),
            None => None,
        })
    }
}

fn told(changed: Changed) -> v1::WatchNodeResponse {
    let Changed { zxid, path, what } = changed;
    v1::WatchNodeResponse { event: what.word().to_owned(), path, zxid: zxid.0 }
}
