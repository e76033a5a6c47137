//! A member lists what it has.

use super::page::{ListA, ListB, Listed};
use crate::epidemic::message::Message;
use crate::epidemic::replica::range::{Range, leaf, position};
use crate::epidemic::{Context, Epidemic};
use crate::slices::position::Position;
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::limits::SCAN_KEYS_MAX;
use quorate_kernel::{invariant, mutant, probe};

impl Epidemic {
    /// A node asks for a page.
    pub(in crate::epidemic) fn on_list(
        &mut self,
        from: Incarnation,
        asked: &ListA,
        cx: &mut Context<'_>,
    ) {
        invariant!(asked.is_sound(), "a listing begins somewhere");
        let ListA { number, limit, takes_doubtful, .. } = *asked;
        let listed = self.listed(&asked.from, limit, takes_doubtful);
        let is_page = |listed: &Listed| listed.is_sound() && listed.is_from(&asked.from);
        invariant!(listed.as_ref().is_none_or(is_page), "a page is what was asked for");
        cx.fx.send(from, Message::ListB(ListB { number, listed }));
    }

    /// The page from a place on, if this node may answer for it: to the end of what it has all of,
    /// and no more keys, nor bytes, than a page holds.
    pub(super) fn listed(&self, from: &Bytes, limit: u32, takes_doubtful: bool) -> Option<Listed> {
        let (state, at) = (&self.state, position(from));
        let may_answer = state.is_ready(at) || mutant!("epidemic_joiner_lists");
        let ready = state.ready.or(state.range()).filter(|_| may_answer)?;
        let limit = usize::try_from(limit).unwrap_or(SCAN_KEYS_MAX).clamp(1, SCAN_KEYS_MAX);
        let end = ready.last;
        let mut listed = state.store.page(from, end, limit);
        let last = listed.next.as_ref().map_or(end, |next| position(next));
        let part = Range { first: at, last };
        if !takes_doubtful && self.is_in_doubt(&part) {
            probe!("epidemic/doubtful_is_not_listed");
            return None;
        }
        if listed.next.is_none() {
            let behind = end.0.checked_add(1).map(Position);
            listed.next = behind.map(|next| Bytes::copy_from_slice(&next.0.to_be_bytes()));
        }
        Some(listed)
    }

    /// Whether others may have keys of a part that this node lacks.
    fn is_in_doubt(&self, part: &Range) -> bool {
        let (first, last) = (leaf(part.first), leaf(part.last));
        self.state.doubt.has_any(first, last) && !mutant!("epidemic_lists_what_it_doubts")
    }
}
