//! Where the primaries of the groups are, as far as is known: hints, on which nothing rests but
//! who is asked first.

use crate::serializable::lane::message::Leads;
use crate::vsr::{Configuration, Epoch, Op, ViewNumber};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::limits::VSR_BEHIND_MAX;
use quorate_kernel::mutant;

/// What is known of one group.
#[derive(Debug)]
struct Route {
    members: Arc<[NodeId]>,
    view: ViewNumber,
    /// How many primaries in a row have not answered.
    silent: u64,
    /// Whether the primary of the view has said that it serves.
    serves: bool,
}

/// All groups.
#[derive(Debug, Default)]
pub struct Routes {
    of: BTreeMap<GroupId, Route>,
}

impl Routes {
    /// A group begins with these members.
    pub fn found(&mut self, group: GroupId, members: &Arc<[NodeId]>) {
        let view = ViewNumber::first(Epoch(1));
        self.of
            .insert(group, Route { members: Arc::clone(members), view, silent: 0, serves: false });
    }

    /// Somebody says who the members of a group are, and in which view; whether that is news.
    pub fn learn(&mut self, leads: &Leads) -> bool {
        let Some(route) = self.of.get_mut(&leads.group) else { return false };
        let (epoch, view) = (leads.view.epoch.0, leads.view.view);
        // Nobody is believed a number that can follow no other.
        let is_far = epoch.saturating_sub(route.view.epoch.0) > VSR_BEHIND_MAX
            || view.saturating_sub(route.view.view) > VSR_BEHIND_MAX;
        if leads.view < route.view || is_far {
            return false;
        }
        let is_known = leads.view == route.view;
        if is_known && (!leads.serves || (route.serves && route.silent == 0)) {
            return false;
        }
        let serves = leads.serves;
        *route = Route { members: Arc::clone(&leads.members), view: leads.view, silent: 0, serves };
        true
    }

    /// What is known of a group.
    #[must_use]
    pub fn leads(&self, group: GroupId) -> Option<Leads> {
        let route = self.of.get(&group)?;
        let (members, view) = (Arc::clone(&route.members), route.view);
        Some(Leads { group, members, view, serves: false })
    }

    /// Who is asked: whoever seems to be the primary.
    #[must_use]
    pub fn primary(&self, group: GroupId) -> Option<NodeId> {
        let Route { members, view, silent, .. } = self.of.get(&group)?;
        let before = view.epoch.0.checked_sub(1).map(Epoch)?;
        let asked = ViewNumber { view: view.view.wrapping_add(*silent), ..*view };
        Configuration::after(before, members, Op(0)).primary(group, asked)
    }

    /// The primary of the newest view that is known, whoever is silent: a question that waits for a
    /// key is no reason to take votes and decisions elsewhere.
    #[must_use]
    pub fn leader(&self, group: GroupId) -> Option<NodeId> {
        if mutant!("lane_votes_follow_silence") {
            return self.primary(group);
        }
        let Route { members, view, .. } = self.of.get(&group)?;
        let before = view.epoch.0.checked_sub(1).map(Epoch)?;
        Configuration::after(before, members, Op(0)).primary(group, *view)
    }

    /// A host did not answer for a group, or says that it does not lead it: the next one is asked.
    pub fn is_silent(&mut self, group: GroupId, node: NodeId) {
        if self.primary(group) == Some(node)
            && let Some(route) = self.of.get_mut(&group)
        {
            route.silent = route.silent.wrapping_add(1);
        }
    }

    /// How many members it takes to serve a group.
    #[must_use]
    pub fn majority(&self, group: GroupId) -> usize {
        self.of.get(&group).map_or(1, |route| route.members.len() / 2 + 1)
    }

    /// The members of all groups.
    pub fn members(&self) -> impl Iterator<Item = NodeId> {
        self.of.values().flat_map(|route| route.members.iter().copied())
    }

    /// All groups with their members and views.
    pub fn all(&self) -> impl Iterator<Item = Leads> {
        self.of.keys().filter_map(|group| self.leads(*group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn whoever_is_silent_is_followed_by_all_others_and_later_views_alone_are_news() {
        let members: Arc<[NodeId]> = [1, 2, 3].map(NodeId).into();
        let mut routes = Routes::default();
        routes.found(GroupId(1), &members);
        let mut asked = BTreeSet::new();
        for _ in 0..3 {
            let node = routes.primary(GroupId(1)).expect("it is known");
            asked.insert(node);
            routes.is_silent(GroupId(1), NodeId(9));
            assert_eq!(routes.primary(GroupId(1)), Some(node), "another one is meant");
            routes.is_silent(GroupId(1), node);
            assert_ne!(routes.primary(GroupId(1)), Some(node), "another one is asked");
        }
        let first = routes.leader(GroupId(1));
        routes.is_silent(GroupId(1), first.expect("it is known"));
        assert_eq!(routes.leader(GroupId(1)), first, "votes still go to it");
        assert_eq!(asked.len(), 3, "all are asked");
        let of = |epoch, view, members: &[u64]| Leads {
            group: GroupId(1),
            members: members.iter().copied().map(NodeId).collect(),
            view: ViewNumber { epoch: Epoch(epoch), view },
            serves: false,
        };
        assert!(!routes.learn(&of(1, 0, &[1, 2])) && !routes.learn(&of(1, u64::MAX, &[1])));
        assert!(routes.learn(&of(2, 0, &[4])) && !routes.learn(&of(1, 5, &[1, 2, 3])));
        assert_eq!((routes.primary(GroupId(1)), routes.majority(GroupId(1))), (Some(NodeId(4)), 1));
        assert_eq!(routes.primary(GroupId(2)), None);
        let serves = Leads { serves: true, ..of(2, 0, &[4]) };
        assert!(routes.learn(&serves) && !routes.learn(&serves), "it is news once");
        routes.is_silent(GroupId(1), NodeId(4));
        assert!(routes.learn(&serves), "it is there after all");
    }
}
