//! Clients that a group was not asked by for long: what it remembers for them alone is dropped.
//!
//! Whoever does not know how a transaction ended asks at least once a second, so a client that was
//! silent for [`GONE`] knows, is gone, or could not be heard. If it comes back and asks it is told
//! that nobody knows any more, never that its transaction has failed.

use crate::serializable::lane::{Context, Serializable};
use crate::serializable::{Client, Head, Input, Request};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound;
use quorate_kernel::ids::GroupId;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};

/// How long a client may be silent before it is gone.
pub const GONE: Span = Span::secs(60);

/// When a primary has heard clients last for whom something is remembered. Lost with its view: the
/// next one begins to wait anew.
#[derive(Debug, Default)]
pub struct Heard(BTreeMap<Client, Time>);

impl Heard {
    /// A request has come. Of whoever nothing is remembered nothing is noted: anybody can make up
    /// names, and who is remembered later is heard from then on.
    pub fn hear(&mut self, request: &Request, now: Time) {
        let client = match request {
            Request::Commit(commit) => commit.rank.tx.client,
            Request::Outcome { token } => token.tx.client,
            Request::Read { .. } | Request::ReadAny { .. } | Request::Check { .. } => return,
        };
        if mutant!("lane_hears_of_anybody") {
            self.0.insert(client, now);
        } else if let Some(since) = self.0.get_mut(&client) {
            *since = now;
        }
    }

    /// This node leads no more.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Who is gone, of those for whom something is remembered.
    fn gone(&mut self, head: &Head, now: Time) -> Vec<Client> {
        let known = clients(head);
        let is_silent = |since: Time| now - since >= GONE;
        self.0.retain(|client, _| known.contains(client));
        for client in &known {
            self.0.entry(*client).or_insert(now);
        }
        known.into_iter().filter(|client| is_silent(self.0[client])).collect()
    }
}

/// Those for whom a group remembers how transactions have ended.
fn clients(head: &Head) -> BTreeSet<Client> {
    let mut clients = BTreeSet::new();
    let mut from = Bound::Unbounded;
    while let Some(((client, _), _)) = head.outcomes.range((from, Bound::Unbounded)).next() {
        clients.insert(*client);
        from = Bound::Excluded((*client, u64::MAX));
    }
    clients
}

impl Serializable {
    /// Has a group that is led here forget what it remembers for clients that are gone.
    pub(super) fn drop_gone(&mut self, group: GroupId, cx: &mut Context<'_>) {
        let Some(hosted) = self.groups.get_mut(&group) else { return };
        let gone = hosted.heard.gone(&hosted.state.head, cx.now);
        for client in gone.into_iter().filter(|_| !mutant!("lane_remembers_the_gone")) {
            probe!("serializable/lane_gone");
            self.handle(group, Input::ClientGone(client), cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serializable::{Recorded, Token, TxId};

    #[test]
    fn clients_are_noted_for_whom_something_is_remembered() {
        let ask = |client| {
            let tx = TxId { counter: 5, client: Client(client) };
            Request::Outcome { token: Token { tx, coordinator: GroupId(1) } }
        };
        let at = |secs| Time(0) + Span::secs(secs);
        let (mut heard, mut head) = (Heard::default(), Head::default());
        (0..9).for_each(|client| heard.hear(&ask(client), at(1)));
        assert!(heard.0.is_empty(), "nothing is remembered for them");
        let recorded = Recorded { groups: Vec::new(), outcome: Ok(Vec::new()) };
        head.outcomes.insert((Client(2), 5), recorded);
        assert!(heard.gone(&head, at(2)).is_empty());
        heard.hear(&ask(2), at(30));
        assert!(heard.gone(&head, at(89)).is_empty(), "it has asked since");
        assert_eq!(heard.gone(&head, at(90)), [Client(2)]);
        head.outcomes.clear();
        assert!(heard.gone(&head, at(91)).is_empty() && heard.0.is_empty());
    }
}
