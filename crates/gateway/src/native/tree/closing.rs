//! What tells a stream that its session was closed.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;

/// Tells the stream of a session when that is closed; never, if it is opened again before.
pub(super) struct Closing(Option<oneshot::Receiver<()>>);

impl Closing {
    pub(super) fn new(told: oneshot::Receiver<()>) -> Closing {
        Closing(Some(told))
    }

    /// Whether the session was closed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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
