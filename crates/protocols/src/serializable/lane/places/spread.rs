//! What hosts tell each other of where buckets are, and groups that are added.

use crate::groups::founders_among;
use crate::serializable::lane::message::Message;
use crate::serializable::lane::places::homes::Homes;
use crate::serializable::lane::{Context, Serializable};
use crate::serializable::moves::places::STEWARD;
use crate::serializable::{Input, Raw, bucket_of};
use crate::vsr::{are_members, is_known};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::probe;
use quorate_kernel::process::Recovery;

/// Where buckets are.
pub type Placed = Vec<(u8, u64, GroupId)>;

/// Groups that were added, each with its founders.
pub type Founded = Vec<(GroupId, Arc<[NodeId]>)>;

impl Serializable {
    /// What the log of a group says of where buckets are.
    fn placed(&self, group: GroupId) -> Placed {
        let Some(hosted) = self.groups.get(&group) else { return Placed::new() };
        let moved = hosted.state.head.moves.buckets.iter();
        moved.map(|(bucket, moved)| (*bucket, moved.version, moved.home)).collect()
    }

    fn founded(&self) -> Founded {
        let Some(hosted) = self.groups.get(&STEWARD) else { return Founded::new() };
        let founded = hosted.state.head.moves.founded.iter();
        founded.map(|(group, members)| (*group, Arc::from(&members[..]))).collect()
    }

    /// Tells hosts what the log of a group that is led here says of places. What it says was
    /// committed, and hosts take it for hints; so it promises nothing.
    pub(crate) fn spread_places(
        &mut self,
        group: GroupId,
        hosts: &Arc<[NodeId]>,
        cx: &mut Context<'_>,
    ) {
        let (list, founded) = (self.placed(group), self.founded());
        if !list.is_empty() {
            if !hosts.is_empty() {
                cx.fx.send_early(hosts, Message::Placed { group, list: list.clone() });
            }
            self.note_places(&list, cx);
        }
        if group == STEWARD && !founded.is_empty() {
            if !hosts.is_empty() {
                cx.fx.send_early(hosts, Message::Founded(founded.clone()));
            }
            self.note_founded(founded, cx);
        }
    }

    /// Tells a host that asks a group for keys where those are that are not there.
    pub(crate) fn say_places(
        &self,
        to: Incarnation,
        group: GroupId,
        each_key: impl FnOnce(&mut dyn FnMut(&Raw) -> bool),
        cx: &mut Context<'_>,
    ) {
        let Some(hosted) = self.groups.get(&group) else { return };
        let state = &hosted.state;
        if !state.head.moves.has_moved() {
            // Nobody takes its keys to be elsewhere, nor others' to be here.
            return;
        }
        let mut away = BTreeSet::new();
        each_key(&mut |key| {
            let bucket = bucket_of(key);
            if !state.is_here(bucket) {
                away.insert(bucket);
            }
            true
        });
        let of = |bucket: u8| {
            let (version, home) = state.home(bucket);
            (bucket, version, home)
        };
        let list: Placed = away.into_iter().map(of).collect();
        if !list.is_empty() {
            // It is a hint.
            cx.fx.send_early(to, Message::Placed { group, list });
        }
    }

    /// A host says where buckets are, as the log of a group has it.
    pub(crate) fn on_placed(
        &mut self,
        from: Incarnation,
        group: GroupId,
        list: &Placed,
        cx: &mut Context<'_>,
    ) {
        if !Homes::may_be(group) {
            return cx.fx.refuse("a group of the keyspace tells of places");
        }
        invariant!(!list.is_empty(), "a frame that says nothing is not read");
        // Who is no member as far as is known says it again.
        if self.routes.is_member(group, from.node) {
            self.note_places(list, cx);
        }
        invariant!(self.homes.knows(STEWARD), "the first group is always there");
    }

    fn note_places(&mut self, list: &Placed, cx: &mut Context<'_>) {
        let mut is_news = false;
        for (bucket, version, home) in list {
            is_news |= self.homes.note(*bucket, (*version, *home));
        }
        if is_news {
            self.place_all_again(cx);
        }
    }

    /// A host says who founds groups that were added, as the log of the first group has it.
    pub(crate) fn on_founded(&mut self, from: Incarnation, founded: Founded, cx: &mut Context<'_>) {
        if founded.iter().any(|(group, _)| !Homes::may_be(*group) || *group == STEWARD) {
            return cx.fx.refuse("a group of the keyspace is added");
        }
        invariant!(!founded.is_empty(), "a frame that says nothing is not read");
        if self.routes.is_member(STEWARD, from.node) {
            self.note_founded(founded, cx);
        }
        invariant!(self.homes.knows(STEWARD), "the first group is always there");
    }

    /// Groups were added: who founds one begins it, once for all its starts.
    fn note_founded(&mut self, founded: Founded, cx: &mut Context<'_>) {
        for (group, members) in founded {
            invariant!(are_members(&members), "founders are members");
            if !self.homes.knows(group) {
                self.homes.add(group);
                self.routes.found(group, &members);
            }
            let is_new = !self.groups.contains_key(&group) && !is_known(group, cx.table);
            if members.contains(&cx.me.node) && is_new {
                probe!("serializable/group_added");
                self.start_group(group, Some(&members), Recovery::Intact, cx);
            }
        }
    }

    /// Groups that were added before this start, and of which something is stored here.
    pub(crate) fn start_added(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        let founding = self.homes.founding();
        let others = (1..=super::place::BUCKETS).map(GroupId);
        for group in others.filter(|group| founding.groups().all(|it| it != *group)) {
            if !is_known(group, cx.table) {
                continue;
            }
            self.start_group(group, None, recovery, cx);
            if self.groups.get(&group).is_some_and(|it| it.replica.is_empty()) {
                self.groups.remove(&group);
            }
        }
    }

    /// A group that is led here asks for the buckets that should be its own; the first one has
    /// groups founded that should be there.
    pub(crate) fn tick_places(&mut self, group: GroupId, cx: &mut Context<'_>) {
        let wanted = self.homes.wanted();
        self.handle(group, Input::Wanted(wanted), cx);
        let away = self.homes.away().filter(|bucket| wanted.of_bucket(*bucket) == group);
        let away: Vec<(u8, (u64, GroupId))> =
            away.map(|bucket| (bucket, self.homes.home(bucket))).collect();
        for (bucket, home) in away {
            self.handle(group, Input::Want { bucket, home }, cx);
        }
        if group != STEWARD {
            return;
        }
        let missing: Vec<GroupId> = wanted.groups().filter(|it| !self.homes.knows(*it)).collect();
        let mut all: Vec<_> = self.routes.all().collect();
        for missing in missing {
            let of = (missing, self.settings.replicas);
            let Some(leads) = founders_among(&self.hosts, &all, of) else { return };
            let members = leads.members.to_vec();
            all.push(leads);
            self.handle(STEWARD, Input::Found { group: missing, members }, cx);
        }
    }
}
