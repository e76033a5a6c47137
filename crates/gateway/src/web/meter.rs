//! A budget for the bytes of requests and answers that are in memory.
//!
//! Each request has an [`Allowance`]. Its body takes from it as it arrives, and whoever answers
//! takes what the answer holds; all of it is given back when the answer was taken or the request
//! died. When the budget is used up, requests are refused: to let them wait would let a few that
//! never end block all others.

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
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

/// How an answer goes on, as those see who wait for its client.
#[derive(Debug)]
pub struct Progress {
    began: Instant,
    /// When it last went on, in milliseconds since it began.
    at_ms: AtomicU64,
    /// Pieces that were handed to the connection and not taken by the client yet.
    leaving: AtomicUsize,
    /// Whether the connection asked for more, and there is none yet.
    is_source_awaited: AtomicBool,
}

impl Default for Progress {
    fn default() -> Progress {
        let (at_ms, leaving) = (AtomicU64::new(0), AtomicUsize::new(0));
        let is_source_awaited = AtomicBool::new(false);
        Progress { began: Instant::now(), at_ms, leaving, is_source_awaited }
    }
}

impl Progress {
    fn mark(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.at_ms.store(now, Ordering::Relaxed);
    }

    /// For how long the client has taken nothing of what is there for it.
    #[must_use]
    pub fn idle(&self) -> Duration {
        let is_empty = self.leaving.load(Ordering::Relaxed) == 0;
        if is_empty && self.is_source_awaited.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let at = Duration::from_millis(self.at_ms.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(at)
    }
}

/// The answers of one connection that have not been taken whole.
#[derive(Debug, Default)]
pub struct Answers(Mutex<Vec<Weak<Progress>>>);

impl Answers {
    /// One more. It is looked after until nothing holds it any more.
    pub fn add(&self, progress: &Arc<Progress>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == all.capacity() {
            all.retain(|one| one.strong_count() > 0);
        }
        all.push(Arc::downgrade(progress));
    }

    /// The longest time for which the client has taken nothing of one of them.
    pub fn idle(&self) -> Duration {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = all.iter().filter_map(Weak::upgrade).map(|progress| progress.idle());
        idle.max().unwrap_or_default()
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

/// The body of an answer: keeps the request's allowance until it was taken.
///
/// It leaves in pieces, each of which keeps the allowance too: what a connection has of it still
/// waits for the client. A connection asks for no piece while its client takes nothing at all.
#[derive(Debug)]
pub struct Leaving {
    body: Body,
    /// What the next pieces are cut from.
    rest: Bytes,
    allowance: Arc<Allowance>,
    progress: Arc<Progress>,
}

/// The most bytes that leave at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A piece of an answer on its way.
struct Piece {
    bytes: Bytes,
    progress: Arc<Progress>,
    _allowance: Arc<Allowance>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.progress.leaving.fetch_sub(1, Ordering::Relaxed);
        self.progress.mark();
    }
}

impl Leaving {
    /// A body that keeps this allowance, and notes how it goes on.
    pub fn new(body: Body, allowance: Arc<Allowance>, progress: Arc<Progress>) -> Leaving {
        Leaving { body, rest: Bytes::new(), allowance, progress }
    }

    /// What leaves next.
    fn piece(&mut self) -> Bytes {
        let length = self.rest.len().min(PIECE_BYTES);
        let bytes = self.rest.split_to(length);
        self.progress.leaving.fetch_add(1, Ordering::Relaxed);
        let (progress, _allowance) = (Arc::clone(&self.progress), Arc::clone(&self.allowance));
        Bytes::from_owner(Piece { bytes, progress, _allowance })
    }
}

impl HttpBody for Leaving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.progress.mark();
        if self.rest.is_empty() {
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            self.progress.is_source_awaited.store(polled.is_pending(), Ordering::Relaxed);
            let frame = match ready!(polled) {
                Some(Ok(frame)) => frame,
                other => return Poll::Ready(other),
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        Poll::Ready(Some(Ok(Frame::data(self.piece()))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[tokio::test]
    async fn an_answer_leaves_in_pieces_and_says_how_much_is_left() {
        let budget = Budget::new(1);
        let body = Body::from(vec![7; PIECE_BYTES + 1]);
        let mut leaving = Leaving::new(body, budget.allowance(), Arc::default());
        for (length, left) in [(PIECE_BYTES, 1), (1, 0)] {
            let frame = leaving.frame().await.expect("there is more").expect("no error");
            assert_eq!(frame.data_ref().map(Bytes::len), Some(length));
            assert_eq!(
                (leaving.size_hint().exact(), leaving.is_end_stream()),
                (Some(left), left == 0)
            );
        }
        assert!(leaving.frame().await.is_none());
    }

    #[tokio::test]
    async fn an_answer_holds_its_allowance_until_its_last_piece_was_taken() {
        let budget = Budget::new(10);
        let (allowance, progress) = (budget.allowance(), Arc::<Progress>::default());
        allowance.take(4).expect("it fits");
        let mut leaving = Leaving::new(Body::from("1234"), allowance, Arc::clone(&progress));
        let piece = leaving.frame().await.expect("there is one").expect("no error");
        assert!(leaving.frame().await.is_none());
        drop(leaving);
        assert_eq!((budget.left(), Arc::strong_count(&progress)), (6, 2), "the piece is there");
        drop(piece);
        assert_eq!((budget.left(), Arc::strong_count(&progress)), (10, 1));
    }

    /// A client takes nothing of an answer that it was told of, or has all there is of one.
    #[test]
    fn a_client_is_idle_only_while_there_is_something_to_take() {
        let (budget, answers) = (Budget::new(10), Answers::default());
        let leaving = |body: Body| {
            let progress = Arc::<Progress>::default();
            answers.add(&progress);
            Leaving::new(body, budget.allowance(), progress)
        };
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert_eq!(answers.idle(), Duration::ZERO);
        let untaken = leaving(Body::from("1"));
        assert!(answers.idle() > Duration::ZERO, "nobody has asked for it");
        drop(untaken);
        assert_eq!(answers.idle(), Duration::ZERO);
        let quiet = tokio_stream::pending::<Result<Bytes, axum::Error>>();
        let begun = tokio_stream::once(Ok(Bytes::from_static(b"1")));
        let mut stream = leaving(Body::from_stream(tokio_stream::StreamExt::chain(begun, quiet)));
        let piece = Pin::new(&mut stream).poll_frame(&mut cx);
        assert!(piece.is_ready() && Pin::new(&mut stream).poll_frame(&mut cx).is_pending());
        assert!(answers.idle() > Duration::ZERO, "the piece is not taken");
        drop(piece);
        assert_eq!(answers.idle(), Duration::ZERO, "there is no more yet");
    }

    #[test]
    fn answers_that_were_taken_are_forgotten() {
        let answers = Answers::default();
        let kept: Vec<_> = (0..3).map(|_| Arc::<Progress>::default()).collect();
        kept.iter().for_each(|progress| answers.add(progress));
        (0..10_000).for_each(|_| answers.add(&Arc::default()));
        let all = answers.0.lock().expect("nobody panicked");
        assert!(all.len() < 100, "{} of three", all.len());
        assert!(kept.iter().all(|one| all.iter().any(|it| it.as_ptr() == Arc::as_ptr(one))));
    }
}
