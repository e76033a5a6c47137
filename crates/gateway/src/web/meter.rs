//! A budget for the bytes of requests and answers that are in memory.
//!
//! Each request has an [`Allowance`]. Its body takes from it as it arrives, and whoever answers
//! takes what the answer holds; all of it is given back when the answer was taken or the request
//! died. When the budget is used up, requests are refused: to let them wait would let a few that
//! never end block all others.

use axum::body::{Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use thiserror::Error;
use tokio::sync::oneshot;

/// The budget of one door.
#[derive(Debug)]
pub struct Budget {
    left: AtomicUsize,
    /// All of it.
    bytes: AtomicUsize,
}

/// What one request has taken of the budget.
#[derive(Debug)]
pub struct Allowance {
    budget: Arc<Budget>,
    taken: AtomicUsize,
}

/// The budget is used up. Nothing was done.
#[derive(Clone, Copy, Debug, Error)]
#[error("the host has too many bytes of requests and answers in memory")]
pub struct Exhausted;

impl Budget {
    /// A budget of this many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Arc<Budget> {
        Arc::new(Budget { left: AtomicUsize::new(bytes), bytes: AtomicUsize::new(bytes) })
    }

    /// Adds what is missing of this many bytes; takes nothing away.
    pub fn grow(&self, bytes: usize) {
        let before = self.bytes.fetch_max(bytes, Ordering::Relaxed);
        if before < bytes {
            self.left.fetch_add(bytes - before, Ordering::Relaxed);
        }
    }

    /// The allowance of a request that has taken nothing yet.
    #[must_use]
    pub fn allowance(self: &Arc<Budget>) -> Arc<Allowance> {
        Arc::new(Allowance { budget: Arc::clone(self), taken: AtomicUsize::new(0) })
    }

    /// How many bytes there are in all.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many bytes are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }
}

impl Allowance {
    /// The budget that it takes from.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Takes bytes from the budget.
    ///
    /// # Errors
    /// Fewer are left; none were taken.
    pub fn take(&self, bytes: usize) -> Result<(), Exhausted> {
        let taken = self
            .budget
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.map_err(|_| Exhausted)?;
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Gives bytes back before the request ends; never more than were taken.
    pub fn give(&self, bytes: usize) {
        let less = |taken: usize| Some(taken.saturating_sub(bytes));
        let before = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let given = before.map_or(0, |before| before.min(bytes));
        self.budget.left.fetch_add(given, Ordering::Relaxed);
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        self.budget.left.fetch_add(*self.taken.get_mut(), Ordering::Relaxed);
    }
}

/// The body of a request: takes from the budget what arrives.
#[derive(Debug)]
pub struct Arriving<B> {
    body: B,
    allowance: Arc<Allowance>,
    exhausted: fn() -> BoxError,
    /// Dropped with the last byte, or when nobody wants more.
    arriving: Option<oneshot::Sender<Infallible>>,
}

impl<B> Arriving<B> {
    /// A body that takes from this allowance; `exhausted` is what it ends with if nothing is left.
    /// The receiver ends when whoever answers has all that it reads of the request.
    pub fn new(
        body: B,
        allowance: Arc<Allowance>,
        exhausted: fn() -> BoxError,
    ) -> (Arriving<B>, oneshot::Receiver<Infallible>) {
        let (arriving, arrived) = oneshot::channel();
        (Arriving { body, allowance, exhausted, arriving: Some(arriving) }, arrived)
    }
}

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl<B> HttpBody for Arriving<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let next = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if next.is_none() || self.body.is_end_stream() {
            self.arriving = None;
        }
        Poll::Ready(next.map(|frame| {
            let frame = frame.map_err(Into::into)?;
            let length = frame.data_ref().map_or(0, Bytes::len);
            match self.allowance.take(length) {
                Ok(()) => Ok(frame),
                Err(Exhausted) => Err((self.exhausted)()),
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use http_body_util::BodyExt;

    #[test]
    fn what_was_taken_is_given_back() {
        let budget = Budget::new(100);
        let (one, other) = (budget.allowance(), budget.allowance());
        assert!(one.take(60).is_ok() && other.take(30).is_ok());
        assert!(other.take(11).is_err());
        one.give(10);
        assert_eq!(budget.left(), 20);
        one.give(1_000);
        assert_eq!(budget.left(), 70, "no more than was taken");
        drop(other);
        drop(one);
        assert_eq!(budget.left(), 100);
    }

    #[test]
    fn a_budget_grows_and_never_shrinks() {
        let budget = Budget::new(100);
        let one = budget.allowance();
        assert!(one.take(90).is_ok() && one.take(20).is_err());
        one.budget().grow(150);
        one.budget().grow(120);
        assert_eq!(budget.left(), 60);
        assert!(one.take(60).is_ok());
        drop(one);
        assert_eq!(budget.left(), 150);
    }

    #[tokio::test]
    async fn a_body_over_the_budget_is_refused_while_it_arrives() {
        let budget = Budget::new(10);
        let collect = |text: &'static str| {
            let (allowance, exhausted): (_, fn() -> _) = (budget.allowance(), || Exhausted.into());
            Arriving::new(Body::from(text), allowance, exhausted).0.collect()
        };
        assert_eq!(collect("12345").await.expect("it fits").to_bytes(), "12345");
        let error = collect("12345678901").await.expect_err("it does not");
        assert!(error.is::<Exhausted>());
        assert_eq!(budget.left(), 10);
    }

    #[tokio::test]
    async fn a_body_has_arrived_with_its_last_byte_or_when_nobody_wants_more() {
        let budget = Budget::new(10);
        let arriving = || Arriving::new(Body::from("12"), budget.allowance(), || Exhausted.into());
        let (mut read, mut arrived) = arriving();
        let is_arriving = |arrived: &mut oneshot::Receiver<Infallible>| {
            arrived.try_recv() == Err(oneshot::error::TryRecvError::Empty)
        };
        assert!(is_arriving(&mut arrived));
        assert!(read.frame().await.is_some());
        assert!(!is_arriving(&mut arrived));
        let (unread, mut arrived) = arriving();
        assert!(is_arriving(&mut arrived));
        drop(unread);
        assert!(!is_arriving(&mut arrived));
    }
}
