//! What happens to keyspaces and hosts, as a stream that both doors hand on.

use super::problem::{self, Problem};
use super::service::Native;
use quorate_host::Happened;
use quorate_kernel::ids::LaneId;
use quorate_kernel::watch::{Event, Watch};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Interval, interval};
use tokio_stream::Stream;

/// How often a stream with nothing to tell moves, so that a door takes it for no stalled answer.
const MOVES_EVERY: Duration = Duration::from_secs(15);

/// What happens, one after the other, until the client goes, or an error says why it ends. Takes no
/// more from the core thread than the client takes from it.
pub struct Events {
    from: Receiver<Happened>,
    /// What came together with what was told last.
    waiting: VecDeque<Event>,
    moves: Interval,
    is_over: bool,
}

impl Native {
    /// What happens to keyspaces and hosts from now on, after what there is now.
    ///
    /// # Errors
    /// The host stops, or has too much in hand.
    pub fn events(&self) -> Result<Events, Problem> {
        let begun = self.calls.watch(LaneId::EVENTS, Watch::Cluster);
        let from = begun.map_err(|refusal| problem::refused(&refusal))?;
        let (waiting, moves) = (VecDeque::new(), interval(MOVES_EVERY));
        Ok(Events { from, waiting, moves, is_over: false })
    }
}

impl Stream for Events {
    type Item = Result<Event, Problem>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while self.moves.poll_tick(cx).is_ready() {}
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            let ended = match ready!(self.from.poll_recv(cx)) {
                Some(Ok(events)) => {
                    self.waiting.extend(events);
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

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_api::v1::Kind;
    use quorate_kernel::operation::Refusal;
    use tokio::sync::mpsc::channel;
    use tokio_stream::StreamExt;

    fn stream(from: Receiver<Happened>) -> Events {
        Events { from, waiting: VecDeque::new(), moves: interval(MOVES_EVERY), is_over: false }
    }

    #[tokio::test]
    async fn events_come_one_by_one_and_an_error_says_why_they_end() {
        let (to, from) = channel(4);
        to.try_send(Ok(vec![Event::Current, Event::Current])).expect("room");
        to.try_send(Err(Refusal::TooSlow)).expect("room");
        let mut events = stream(from);
        for _ in 0..2 {
            assert!(matches!(events.next().await, Some(Ok(Event::Current))));
        }
        let Some(Err(why)) = events.next().await else { panic!("it has ended") };
        assert_eq!(why.kind(), Kind::Overloaded);
        assert!(events.next().await.is_none());
    }

    #[tokio::test]
    async fn a_host_that_ends_without_a_word_is_told() {
        let (to, from) = channel(4);
        drop(to);
        let mut events = stream(from);
        let Some(Err(why)) = events.next().await else { panic!("it has ended") };
        assert_eq!(why.kind(), Kind::Stopping);
    }
}
