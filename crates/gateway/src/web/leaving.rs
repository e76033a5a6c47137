//! Answers on their way: what of them the client has not taken, and for how long.
//!
//! A connection looks at all its answers, short ones too: over HTTP/2 nothing of an answer leaves
//! while the client gives no window.

use super::meter::Allowance;
use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

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
    use crate::web::Budget;
    use http_body_util::BodyExt;

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
