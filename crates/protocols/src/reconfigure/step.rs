//! What a proposer asks of its node.

use super::message::Message;
use quorate_kernel::view::{Change, ViewId};

/// What a reply makes the proposer's node do. All messages go to all members of its view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<V = Change> {
    /// Wait on.
    Nothing,
    /// A phase is over: send this to all members and wait for a fresh [`super::backoff`].
    Send(Message<V>),
    /// This is decided: send it to all members as `P3A`, which `Proposer::retry` repeats,
    /// and install it here. It may be another one than was wanted.
    Decided(V),
    /// A majority of the view's members have left the view: the proposer has done its work.
    Installed,
    /// A member has left the view already: drop the proposer, learn the newer view from the
    /// sender, and see whether the change is still wanted.
    Outpaced {
        /// What the member has installed.
        installed: ViewId,
    },
    /// A member has promised another proposer this higher round. Call `Proposer::retry` after a
    /// longer wait; until then a majority may still consent.
    Refused {
        /// The round to go above; the proposer remembers it.
        round: u64,
    },
}
