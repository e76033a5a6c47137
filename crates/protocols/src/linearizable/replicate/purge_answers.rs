//! What members answer to the one that removes tombstones ([`super::purge`]): each stage ends when
//! all of them have.

use super::purge::{Listed, Purge, Stage};
use crate::linearizable::group::Generation;
use crate::linearizable::keys::{first_of, next_interval};
use crate::linearizable::record::{Head, Record};
use crate::linearizable::wire::page::{self, PAGE_BYTES};
use crate::linearizable::{Context, Linearizable};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::limits::PURGE_KEYS_MAX;
use quorate_kernel::operation::Cursor;
use quorate_kernel::probe;
use quorate_kernel::view::ViewId;

impl Linearizable {
    /// A member is in a generation.
    pub(crate) fn on_floor_reply(
        &mut self,
        from: Incarnation,
        view: ViewId,
        generation: Generation,
        cx: &mut Context<'_>,
    ) {
        let until = cx.now + self.settings.pace.purge;
        let Some(group) = self.group_mut(view) else { return };
        let Stage::Raising { goal, reached, found } = &mut group.purge.stage else { return };
        let members = group.view.members();
        invariant!(reached.len() < members.len(), "a stage ends with the last answer");
        invariant!(goal.is_enforced() != found.is_empty(), "what is enforced was listed before");
        let is_asked = group.view.id == view && members.contains(&from.node);
        if !is_asked || generation.number < goal.number {
            return;
        }
        if generation.number > goal.number || generation.floor < goal.floor {
            probe!("linearizable/purge_led_by_two");
            let above = generation.number;
            group.purge = Purge { above, began: group.purge.began, ..Purge::default() };
            return;
        }
        reached.insert(from.node);
        if !members.iter().all(|node| reached.contains(node)) {
            return;
        }
        let (goal, found) = (*goal, core::mem::take(found));
        if goal.is_enforced() {
            self.drop_everywhere(view, goal, &found, cx);
        } else {
            group.purge.stage = Stage::Waiting { goal, until };
        }
    }

    /// A member listed tombstones.
    pub(crate) fn on_tombstones_reply(
        &mut self,
        member: Incarnation,
        (view, generation): (ViewId, u64),
        (begin, next): (Cursor, Option<Cursor>),
        entries: Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        let Stage::Listing { goal, from, pages, found, has_left } = &mut group.purge.stage else {
            return;
        };
        let members = group.view.members();
        invariant!(pages.len() < members.len(), "a stage ends with the last answer");
        invariant!(!goal.is_enforced(), "tombstones are listed before a generation is enforced");
        let is_asked = group.view.id == view && members.contains(&member.node);
        if !is_asked || generation != goal.number || begin != *from {
            return;
        }
        let entries = page::entries(entries).map(|(key, record)| (key, record.head())).collect();
        pages.insert(member.node, Listed { next, entries });
        if !members.iter().all(|node| pages.contains_key(node)) {
            return;
        }
        // What all of them list, up to where the shortest page ends.
        let end = pages.values().filter_map(|page| page.next.as_ref()).min().cloned();
        let mut pages = core::mem::take(pages).into_values();
        let Some(first) = pages.next() else { return };
        let rest: Vec<Listed> = pages.collect();
        let before = end.as_ref().map(first_of);
        let is_before = |key: &Bytes| before.as_ref().is_none_or(|before| key < before);
        let count = |page: &Listed| page.entries.keys().filter(|key| is_before(key)).count();
        let listed = rest.iter().map(count).fold(count(&first), usize::max);
        let known = found.len();
        let is_everywhere = |(key, head): &(Bytes, Head)| {
            is_before(key) && rest.iter().all(|page| page.entries.get(key) == Some(head))
        };
        found.extend(first.entries.into_iter().filter(is_everywhere));
        *has_left |= found.len() - known < listed;
        if end.is_some() {
            probe!("linearizable/removal_of_pages");
        }
        let after = end.or_else(|| next_interval(&group.view.range, begin.token));
        match after {
            Some(after) if found.len() < PURGE_KEYS_MAX => {
                // The next page is asked for when the group is maintained again: clients go first.
                *from = after;
                group.purge.moved = cx.now;
            }
            _ => {
                let (goal, found) = (*goal, core::mem::take(found));
                // What is left is looked for again when members have compared what they hold.
                let is_due = after.is_some() || *has_left;
                self.enforce(view, goal, found, is_due, cx);
            }
        }
    }

    fn enforce(
        &mut self,
        view: ViewId,
        announced: Generation,
        found: BTreeMap<Bytes, Head>,
        is_due: bool,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        group.purge.is_due |= is_due;
        let Generation { number, floor } = announced;
        if found.is_empty() {
            group.purge.stage = Stage::Idle;
            group.purge.above = number;
            return;
        }
        self.raise(view, Generation { number: number + 1, floor }, found, cx);
    }

    fn drop_everywhere(
        &mut self,
        view: ViewId,
        goal: Generation,
        found: &BTreeMap<Bytes, Head>,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        invariant!(goal.is_enforced(), "only an enforced generation lets tombstones go");
        let (mut pages, mut page) = (VecDeque::new(), BytesMut::new());
        for (key, head) in found {
            page::push(&mut page, key, Record::of_head(*head).bytes());
            if page.len() >= PAGE_BYTES {
                pages.push_back(core::mem::take(&mut page).freeze());
            }
        }
        if !page.is_empty() {
            pages.push_back(page.freeze());
        }
        group.purge.moved = cx.now;
        group.purge.stage = Stage::Dropping { goal, pages, reached: BTreeSet::new() };
        self.ask_purge(view, cx);
    }

    /// A member has deleted the page that begins with this key: when all have, the next one is
    /// told.
    pub(crate) fn on_drop_reply(
        &mut self,
        from: Incarnation,
        (view, generation): (ViewId, Generation),
        first: &Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        let Stage::Dropping { goal, pages, reached } = &mut group.purge.stage else { return };
        // An answer to an earlier page that was told twice says nothing of this one.
        let is_present = pages.front().and_then(page::first_key).is_some_and(|key| key == *first);
        let members = group.view.members();
        invariant!(reached.len() < members.len(), "a stage ends with the last answer");
        invariant!(goal.is_enforced(), "only an enforced generation lets tombstones go");
        let is_asked = group.view.id == view && members.contains(&from.node);
        if !is_asked || generation != *goal || !is_present {
            return;
        }
        reached.insert(from.node);
        group.purge.moved = cx.now;
        if !members.iter().all(|node| reached.contains(node)) {
            return;
        }
        pages.pop_front();
        reached.clear();
        match pages.is_empty() {
            true => group.purge.stage = Stage::Idle,
            false => self.ask_purge(view, cx),
        }
    }
}
