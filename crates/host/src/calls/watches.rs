//! Watches that other threads of this process ask for: what they are told, on the core thread.
//!
//! Each has a bounded queue. Its last place is kept for the end of the watch, so that whoever takes
//! too little is told so, and no memory is taken for it.

use super::queues::Happened;
use crate::pending::{PendingRequests, Waiter};
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Outcome, Refusal};
use tokio::sync::mpsc::Sender;

/// Tells the last of a watch, in the place that was kept. Whoever watched may have gone.
pub(crate) fn end(to: &Sender<Happened>, why: Refusal) {
    drop(to.try_send(Err(why)));
}

/// Tells what a lane has answered. A watch whose answers are not taken ends.
pub(crate) fn tell(
    to: &Sender<Happened>,
    ticket: Ticket,
    outcome: Outcome,
    pending: &mut PendingRequests,
) {
    match outcome {
        Outcome::More(events) => {
            let has_room = to.capacity() > 1;
            // If nobody is there, nobody is told why.
            if !has_room || to.try_send(Ok(events)).is_err() {
                end(to, Refusal::TooSlow);
                pending.unwatch(|watch| watch.ticket == ticket);
            }
        }
        Outcome::Refused(why) => end(to, why),
        _ => end(to, Refusal::Unsupported),
    }
}

/// Ends the watches of those who have gone without a word.
pub(crate) fn maintain(pending: &mut PendingRequests) {
    pending.unwatch(|watch| matches!(&watch.waiter, Waiter::Watcher(to) if to.is_closed()));
}

/// Ends all.
pub(crate) fn finish(pending: &mut PendingRequests) {
    for ended in pending.unwatch(|watch| matches!(watch.waiter, Waiter::Watcher(_))) {
        if let Waiter::Watcher(to) = ended {
            end(&to, Refusal::Stopping);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::LaneId;
    use quorate_kernel::limits::WATCH_QUEUE_MAX;
    use quorate_kernel::time::{Span, Time};
    use quorate_kernel::watch::{Event, Watch};
    use quorate_node::pump::Input;
    use std::time::Instant;
    use tokio::sync::mpsc::{Receiver, channel};

    fn more() -> Outcome {
        Outcome::More(vec![Event::Current])
    }

    fn none_pending() -> PendingRequests {
        PendingRequests::new(Instant::now(), Span::secs(5))
    }

    /// A watch of a lane: its ticket, and what its client is told.
    fn begun(pending: &mut PendingRequests, lane: LaneId) -> (Ticket, Receiver<Happened>) {
        let (to, happened) = channel(WATCH_QUEUE_MAX);
        pending.watch(lane, Watch::Cluster, Waiter::Watcher(to));
        let Some(Input::Watch { ticket, .. }) = pending.inputs.pop() else { panic!("it begins") };
        (ticket, happened)
    }

    /// A lane has answered; whether anybody is told.
    fn answer(pending: &mut PendingRequests, ticket: Ticket, outcome: Outcome) -> bool {
        let waiter = pending.answered(ticket, &outcome, Time(9));
        let Some(Waiter::Watcher(to)) = waiter else { return false };
        tell(&to, ticket, outcome, pending);
        true
    }

    /// The tickets of the watches that the node is told to have ended.
    fn ended(pending: &mut PendingRequests) -> Vec<Ticket> {
        let ticket = |input: Input| match input {
            Input::Unwatch { ticket, .. } => ticket,
            other => panic!("{other:?}"),
        };
        pending.inputs.drain(..).map(ticket).collect()
    }

    #[test]
    fn who_takes_nothing_is_told_so_in_bounded_room_and_others_go_on() {
        let mut pending = none_pending();
        let (to_slow, mut slow) = begun(&mut pending, LaneId::EVENTS);
        let (to_other, mut other) = begun(&mut pending, LaneId::EVENTS);
        for number in 0..WATCH_QUEUE_MAX + 5 {
            assert!(answer(&mut pending, to_other, more()));
            assert!(matches!(other.try_recv(), Ok(Ok(_))));
            let is_told = answer(&mut pending, to_slow, more());
            assert_eq!(is_told, number < WATCH_QUEUE_MAX, "it ends, and is nobody's then");
        }
        assert_eq!(ended(&mut pending), [to_slow]);
        for _ in 1..WATCH_QUEUE_MAX {
            assert!(matches!(slow.try_recv(), Ok(Ok(_))));
        }
        assert_eq!(slow.try_recv(), Ok(Err(Refusal::TooSlow)));
        assert!(slow.try_recv().is_err(), "nothing follows");
        assert!(answer(&mut pending, to_other, more()));
    }

    #[test]
    fn a_watch_ends_with_its_client_its_lane_its_keyspace_and_its_host() {
        let mut pending = none_pending();
        let (gone, happened) = begun(&mut pending, LaneId::EVENTS);
        drop(happened);
        let (to_refused, mut refused) = begun(&mut pending, LaneId::EVENTS);
        let (_, mut dropped) = begun(&mut pending, LaneId(LaneId::KEYSPACES.0 + 3));
        let (to_last, mut last) = begun(&mut pending, LaneId::EVENTS);
        maintain(&mut pending);
        assert_eq!(ended(&mut pending), [gone], "the client has gone");
        assert!(answer(&mut pending, to_refused, Outcome::Refused(Refusal::Overloaded)));
        assert_eq!(refused.try_recv(), Ok(Err(Refusal::Overloaded)));
        for one in pending.take_dropped() {
            let (ticket, outcome) = (one.ticket, one.ended_by_drop());
            let Waiter::Watcher(to) = one.waiter else { panic!("all are watches") };
            tell(&to, ticket, outcome, &mut pending);
        }
        assert_eq!(dropped.try_recv(), Ok(Err(Refusal::NotOpen)));
        assert!(ended(&mut pending).is_empty(), "their lanes know");
        finish(&mut pending);
        assert_eq!(last.try_recv(), Ok(Err(Refusal::Stopping)));
        assert_eq!(ended(&mut pending), [to_last]);
        assert!(!answer(&mut pending, to_last, more()), "nobody's");
    }
}
