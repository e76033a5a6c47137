//! Watches that other threads of this process ask for: who is told what, on the core thread.
//!
//! Each has a bounded queue. Its last place is kept for the end of the watch, so that whoever takes
//! too little is told so, and no memory is taken for it.

use super::calls::{Happened, Watching};
use quorate_kernel::ids::{LaneId, Ticket};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_node::pump::Input;
use std::collections::HashMap;
use tokio::sync::mpsc::Sender;

struct Watched {
    lane: LaneId,
    to: Sender<Happened>,
}

impl Watched {
    /// Tells the last of it, in the place that was kept. Whoever watched may have gone.
    fn end(self, why: Refusal) {
        drop(self.to.try_send(Err(why)));
    }
}

/// The watches in hand.
#[derive(Default)]
pub(super) struct Watches {
    in_hand: HashMap<Ticket, Watched>,
    /// What the node is to be told of those that have ended here.
    ended: Vec<Input>,
    is_stopping: bool,
}

impl Watches {
    /// Begins a watch.
    pub fn begin(&mut self, ticket: Ticket, watching: Watching, inputs: &mut Vec<Input>) {
        let Watching { lane, watch, to } = watching;
        let watched = Watched { lane, to };
        if self.is_stopping {
            return watched.end(Refusal::Stopping);
        }
        self.in_hand.insert(ticket, watched);
        inputs.push(Input::Watch { lane, ticket, watch });
    }

    /// A lane has answered; gives the outcome back if the ticket is none of a watch.
    pub fn complete(&mut self, ticket: Ticket, outcome: Outcome) -> Option<Outcome> {
        let Some(watched) = self.in_hand.get(&ticket) else { return Some(outcome) };
        let lane = watched.lane;
        let has_room = watched.to.capacity() > 1;
        let why = match outcome {
            Outcome::More(events) if has_room => match watched.to.try_send(Ok(events)) {
                Ok(()) => return None,
                // Nobody is there who could be told why.
                Err(_) => Refusal::TooSlow,
            },
            Outcome::More(_) => Refusal::TooSlow,
            Outcome::Refused(why) => {
                self.in_hand.remove(&ticket).expect("it was just found").end(why);
                return None;
            }
            _ => Refusal::Unsupported,
        };
        self.in_hand.remove(&ticket).expect("it was just found").end(why);
        self.ended.push(Input::Unwatch { lane, ticket });
        None
    }

    /// What the node is to be told: watches have ended.
    pub fn take_ended(&mut self, inputs: &mut Vec<Input>) {
        inputs.append(&mut self.ended);
    }

    /// Ends the watches of those who have gone without a word.
    pub fn tend(&mut self) {
        let Watches { in_hand, ended, .. } = self;
        in_hand.retain(|ticket, watched| {
            let is_there = !watched.to.is_closed();
            if !is_there {
                ended.push(Input::Unwatch { lane: watched.lane, ticket: *ticket });
            }
            is_there
        });
    }

    /// Ends the watches of lanes that went.
    pub fn end_dropped(&mut self, is_open: impl Fn(LaneId) -> bool) {
        let gone = |_: &Ticket, watched: &mut Watched| !is_open(watched.lane);
        for (_, watched) in self.in_hand.extract_if(gone) {
            watched.end(Refusal::NotOpen);
        }
    }

    /// Ends all, and begins none.
    pub fn finish(&mut self) {
        self.is_stopping = true;
        for (ticket, watched) in self.in_hand.drain() {
            self.ended.push(Input::Unwatch { lane: watched.lane, ticket });
            watched.end(Refusal::Stopping);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::limits::WATCH_QUEUE_MAX;
    use quorate_kernel::watch::{Event, Watch};
    use tokio::sync::mpsc::{Receiver, channel};

    const KEYSPACE: LaneId = LaneId(LaneId::KEYSPACES.0 + 3);

    fn more() -> Outcome {
        Outcome::More(vec![Event::Current])
    }

    /// A watch of a lane, under this ticket.
    fn begun(watches: &mut Watches, ticket: u64, lane: LaneId) -> Receiver<Happened> {
        let (to, happened) = channel(WATCH_QUEUE_MAX);
        let mut inputs = Vec::new();
        let watching = Watching { lane, watch: Watch::Cluster, to };
        watches.begin(Ticket(ticket), watching, &mut inputs);
        happened
    }

    /// The tickets of the watches that the node is told to have ended.
    fn ended(watches: &mut Watches) -> Vec<u64> {
        let mut inputs = Vec::new();
        watches.take_ended(&mut inputs);
        let ticket = |input: &Input| match input {
            Input::Unwatch { ticket, .. } => ticket.0,
            other => panic!("{other:?}"),
        };
        inputs.iter().map(ticket).collect()
    }

    #[test]
    fn who_takes_nothing_is_told_so_in_bounded_room_and_others_go_on() {
        let mut watches = Watches::default();
        let mut slow = begun(&mut watches, 1, LaneId::EVENTS);
        let mut other = begun(&mut watches, 2, LaneId::EVENTS);
        for _ in 0..WATCH_QUEUE_MAX + 5 {
            assert_eq!(watches.complete(Ticket(2), more()), None);
            assert!(matches!(other.try_recv(), Ok(Ok(_))));
            let told = watches.complete(Ticket(1), more());
            assert!(told.is_none() || told == Some(more()), "it ends, and is nobody's then");
        }
        assert_eq!(ended(&mut watches), [1]);
        for _ in 1..WATCH_QUEUE_MAX {
            assert!(matches!(slow.try_recv(), Ok(Ok(_))));
        }
        assert_eq!(slow.try_recv(), Ok(Err(Refusal::TooSlow)));
        assert!(slow.try_recv().is_err(), "nothing follows");
        assert_eq!(watches.complete(Ticket(2), more()), None);
    }

    #[test]
    fn a_watch_ends_with_its_client_its_lane_its_keyspace_and_its_host() {
        let mut watches = Watches::default();
        drop(begun(&mut watches, 1, LaneId::EVENTS));
        let mut refused = begun(&mut watches, 2, LaneId::EVENTS);
        let mut dropped = begun(&mut watches, 3, KEYSPACE);
        let mut last = begun(&mut watches, 4, LaneId::EVENTS);
        watches.tend();
        assert_eq!(ended(&mut watches), [1], "the client has gone");
        let refusal = Outcome::Refused(Refusal::Overloaded);
        assert_eq!(watches.complete(Ticket(2), refusal), None);
        assert_eq!(refused.try_recv(), Ok(Err(Refusal::Overloaded)));
        watches.end_dropped(|lane| lane < LaneId::KEYSPACES);
        assert_eq!(dropped.try_recv(), Ok(Err(Refusal::NotOpen)));
        assert!(ended(&mut watches).is_empty(), "their lanes know");
        watches.finish();
        assert_eq!(last.try_recv(), Ok(Err(Refusal::Stopping)));
        assert_eq!(ended(&mut watches), [4]);
        assert_eq!(begun(&mut watches, 5, KEYSPACE).try_recv(), Ok(Err(Refusal::Stopping)));
        assert_eq!(watches.complete(Ticket(4), more()), Some(more()), "nobody's");
    }
}
