//! The entry of a listing: it asks members in turn, until one answers.

use super::page::{ListA, ListB, place_of};
use crate::epidemic::message::Message;
use crate::epidemic::pending::PENDING_MAX;
use crate::epidemic::replica::range::position;
use crate::epidemic::{Context, Epidemic};
use crate::slices::position::Position;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::operation::{Cursor, Outcome, Refusal};
use quorate_kernel::time::Time;
use quorate_kernel::{invariant, mutant, probe};

/// After how many rounds without an answer another member is asked.
const SILENT_ROUNDS: u64 = 4;
/// What a listing takes, where it was given something else.
const CURSORS: &str = "cursors as pages give them, in which a key stands with its own token";

/// The pages that clients of this node wait for.
#[derive(Clone, Debug, Default)]
pub struct Listings {
    asked: BTreeMap<u64, AskedPage>,
    /// How many questions there were in this start.
    count: u64,
}

#[derive(Clone, Debug)]
struct AskedPage {
    ticket: Ticket,
    from: Bytes,
    limit: u32,
    deadline: Time,
    /// Who was asked since all that are known were.
    of: BTreeSet<NodeId>,
    /// The round in which one was asked last.
    sent: u64,
    /// Whether anybody was ever known that could be asked.
    is_known: bool,
    /// Whether all that are known were asked, and none of them had a page without doubt.
    takes_doubtful: bool,
}

impl Listings {
    /// How many there are.
    #[must_use]
    pub fn open(&self) -> usize {
        self.asked.len()
    }
}

impl Epidemic {
    /// A client lists keys.
    pub(in crate::epidemic) fn list(
        &mut self,
        ticket: Ticket,
        (from, limit): (&Cursor, u32),
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        let Some(from) = place_of(from) else {
            let why = Refusal::Value { expected: CURSORS };
            // Nothing was done.
            return cx.fx.answer_early(ticket, Outcome::Refused(why));
        };
        if self.state.pending.len() + self.state.listings.open() >= PENDING_MAX {
            // Nothing was done.
            return cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Overloaded));
        }
        let (of, sent) = (BTreeSet::new(), self.state.round);
        let (is_known, takes_doubtful) = (false, false);
        let asked = AskedPage { ticket, from, limit, deadline, of, sent, is_known, takes_doubtful };
        self.state.listings.count += 1;
        let number = self.state.listings.count;
        self.state.listings.asked.insert(number, asked);
        self.ask_next(number, false, cx);
        invariant!(self.state.writes.is_empty(), "a listing writes nothing");
    }

    /// Asks the next one that may have all from a place on, this node itself first. When all were
    /// asked it begins anew, if it may.
    fn ask_next(&mut self, number: u64, may_begin_anew: bool, cx: &mut Context<'_>) {
        let Some(asked) = self.state.listings.asked.get(&number) else { return };
        if let Some(listed) = self.listed(&asked.from, asked.limit, asked.takes_doubtful) {
            let asked = self.state.listings.asked.remove(&number).expect("it was there");
            // It may show what is not durable yet.
            return cx.fx.answer(asked.ticket, listed.outcome());
        }
        let known = self.known_at(position(&asked.from));
        let (round, state) = (self.state.round, &mut self.state);
        let asked = state.listings.asked.get_mut(&number).expect("it was there");
        asked.is_known |= !known.is_empty();
        let is_new = |node: &NodeId| !asked.of.contains(node);
        let mut next: Vec<NodeId> = known.iter().copied().filter(is_new).collect();
        if next.is_empty() && may_begin_anew {
            asked.of.clear();
            asked.takes_doubtful = true;
            next = known.into_iter().collect();
        }
        let Some(node) = cx.rng.pick(&next).copied() else { return };
        asked.of.insert(node);
        asked.sent = round;
        let AskedPage { from, limit, takes_doubtful, .. } = asked.clone();
        // A question promises nothing.
        cx.fx.send_early(node, Message::ListA(ListA { number, from, limit, takes_doubtful }));
    }

    /// The nodes that stand in the slice of a position, as far as this one knows; before it knows
    /// of slices all.
    fn known_at(&self, at: Position) -> BTreeSet<NodeId> {
        let state = &self.state;
        let members = state.slices.members().iter().chain(state.cyclon.view());
        let known = members.chain(&state.hints).map(|peer| peer.who.node);
        let groups = state.slices.groups();
        let is_there = |node: &NodeId| {
            groups.is_none_or(|groups| groups.slice(Position::of(*node)) == groups.slice(at))
        };
        known.filter(|node| *node != state.me.node && is_there(node)).collect()
    }

    /// A member answers. A page that is none of what it was asked for is dropped.
    pub(in crate::epidemic) fn on_page_of_keys(
        &mut self,
        from: Incarnation,
        page: ListB,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        let Some(asked) = self.state.listings.asked.get(&page.number) else { return };
        let is_asked = asked.of.contains(&from.node);
        match page.listed {
            Some(listed) if is_asked && listed.is_from(&asked.from) => {
                // It rests on what another node has, and that was durable before it sent it.
                cx.fx.answer_early(asked.ticket, listed.outcome());
                self.state.listings.asked.remove(&page.number);
            }
            None if is_asked => {
                probe!("epidemic/list_of_another");
                self.ask_next(page.number, false, cx);
            }
            Some(_) if is_asked => cx.fx.refuse("a page of other keys than were asked for"),
            // It was asked before all were asked anew.
            _ => {}
        }
        invariant!(self.state.writes.is_empty(), "a listing writes nothing");
    }

    /// A round has passed: another one is asked in place of who is silent.
    pub(in crate::epidemic) fn on_listings_round(&mut self, cx: &mut Context<'_>) {
        let round = self.state.round;
        let is_over = |asked: &AskedPage| asked.deadline <= cx.now;
        let over: Vec<u64> = {
            let over = self.state.listings.asked.iter().filter(|(_, asked)| is_over(asked));
            over.map(|(number, _)| *number).collect()
        };
        for number in over {
            let asked = self.state.listings.asked.remove(&number).expect("it is in hand");
            let why = match asked.is_known {
                true => Refusal::NoQuorum { reached: 0, needed: 1 },
                false => Refusal::NoRoute,
            };
            // Nothing was done.
            cx.fx.answer_early(asked.ticket, Outcome::Refused(why));
        }
        let is_silent = |asked: &AskedPage| round >= asked.sent + SILENT_ROUNDS;
        let silent = self.state.listings.asked.iter().filter(|(_, asked)| is_silent(asked));
        let silent: Vec<u64> = silent.map(|(number, _)| *number).collect();
        for number in silent.into_iter().filter(|_| !mutant!("epidemic_lists_of_one_alone")) {
            probe!("epidemic/list_again");
            self.ask_next(number, true, cx);
        }
    }
}
