//! How many slices there should be.

use super::floor::{self, Least};
use super::position::{Groups, LOG2_MAX};
use super::{Changed, Profile};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;

/// How many partners' words are kept.
pub const HEARD_MAX: usize = 32;
/// How many partners must have told a count before a number of slices is changed for it.
pub const COUNTS_MIN: usize = 6;
/// How many partners a joiner asks for the number of slices.
pub const VOTES: usize = 3;

/// What slices shall be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The fewest members that a slice shall have on average; one at least.
    pub replicas_min: u16,
    /// The most that it shall have on average; twice the fewest at least.
    pub replicas_max: u16,
    /// For how many periods a member is believed to live that nobody hears of. As long passes
    /// between two changes.
    pub age_max: u16,
    /// How many estimates in a row must want the same change.
    pub equal: u16,
    /// The fewest members that any slice shall have ([`super::floor`]); 0 where only their mean
    /// matters, as in the paper.
    pub floor: u16,
}

impl Bounds {
    /// As in the paper: six to twelve members.
    pub const USUAL: Bounds =
        Bounds { replicas_min: 6, replicas_max: 12, age_max: 20, equal: 4, floor: 0 };

    /// Whether slices can be like that. With less than twice the fewest for the most a slice that
    /// is cut is too small at once.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        0 < self.replicas_min
            && 2 * self.replicas_min <= self.replicas_max
            && self.replicas_max <= 1024
            && 0 < self.age_max
            && 0 < self.equal
            && self.equal < self.age_max
            && self.floor <= self.replicas_min
    }

    /// Above which mean number of members slices are cut. It leaves an eighth of the fewest on
    /// either side, so that the halves are not joined again.
    const fn cut_above(&self) -> u32 {
        let (most, least) = (self.replicas_max as u32, self.replicas_min as u32);
        let apart = 2 * least + least.div_ceil(4);
        if most > apart { most } else { apart }
    }

    /// The most members that a node keeps in its view: enough to see that there are too many.
    #[must_use]
    pub const fn members_max(&self) -> usize {
        4 * self.replicas_max as usize
    }

    /// How many nodes on average are in each of these slices is more than there shall be.
    fn is_crowded(&self, nodes: u32, groups: Groups) -> bool {
        u64::from(nodes) > u64::from(self.cut_above()) << groups.log2()
    }

    fn is_sparse(&self, nodes: u32, groups: Groups) -> bool {
        u64::from(nodes) < u64::from(self.replicas_min) << groups.log2()
    }

    /// The number of slices that fits so many nodes and is nearest to this one.
    fn fitting(&self, nodes: u32, near: Groups) -> Groups {
        let mut log2 = near.log2();
        let groups = |log2| Groups::power(log2).expect("it stays within its limits");
        while log2 < LOG2_MAX && self.is_crowded(nodes, groups(log2)) {
            log2 += 1;
        }
        while log2 > 0 && self.is_sparse(nodes, groups(log2)) {
            log2 -= 1;
        }
        groups(log2)
    }

    fn fits(&self, nodes: u32, groups: Groups) -> bool {
        self.fitting(nodes, groups) == groups
    }
}

/// What one partner told.
#[derive(Clone, Copy, Debug)]
struct Word {
    from: NodeId,
    told: Profile,
    /// In periods.
    age: u16,
}

/// What one node makes of what its partners tell.
#[derive(Clone, Debug)]
pub struct Estimate {
    bounds: Bounds,
    groups: Option<Groups>,
    /// What partners told, and how many periods ago; the newest last.
    heard: VecDeque<Word>,
    /// Which number the last estimates wanted, and how many of them in a row.
    wanted: Option<(Groups, u16)>,
    /// How many periods ago the number changed, or the node began.
    since: u16,
    /// For how many periods partners were heard without a pause as long as words are kept.
    together: u16,
}

impl Estimate {
    /// Nothing was heard.
    #[must_use]
    pub fn new(bounds: Bounds) -> Estimate {
        invariant!(bounds.is_sound(), "slices can be like that");
        Estimate {
            bounds,
            groups: None,
            heard: VecDeque::new(),
            wanted: None,
            since: 0,
            together: 0,
        }
    }

    /// What slices shall be like.
    #[must_use]
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The number of slices that the node goes by.
    #[must_use]
    pub fn groups(&self) -> Option<Groups> {
        self.groups
    }

    /// Whether the view has had the time to be filled since the last change.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.groups.is_some() && self.since >= self.bounds.age_max
    }

    /// Whether others were heard as long as words are kept.
    #[must_use]
    pub fn hears(&self) -> bool {
        !self.heard.is_empty()
    }

    /// Whether others were heard for long enough to know all that they know.
    #[must_use]
    pub fn is_together(&self) -> bool {
        self.together >= self.bounds.age_max
    }

    /// A partner tells of itself. A joiner takes the number that most of the first have; of two
    /// that equally many have, the smaller: there a slice has more members.
    pub fn hear(&mut self, from: NodeId, told: Profile) -> Option<Changed> {
        if self.heard.len() == HEARD_MAX {
            self.heard.pop_front();
        }
        self.heard.push_back(Word { from, told, age: 0 });
        if self.groups.is_some() || self.votes().len() < VOTES {
            return None;
        }
        let to = self.majority().expect("there are votes");
        Some(self.change(to))
    }

    /// Which number each partner had when it told one last. Whoever is heard often has one vote.
    fn votes(&self) -> BTreeMap<NodeId, Groups> {
        let told = |word: &Word| word.told.groups.map(|groups| (word.from, groups));
        let votes = self.heard.iter().filter_map(told);
        if mutant!("slices_words_vote") {
            let numbered = votes.enumerate();
            return numbered.map(|(word, (_, groups))| (NodeId(word as u64), groups)).collect();
        }
        votes.collect()
    }

    /// The number that most partners have.
    fn majority(&self) -> Option<Groups> {
        let mut votes = BTreeMap::new();
        for groups in self.votes().into_values() {
            *votes.entry(groups).or_insert(0) += 1;
        }
        let most = votes.values().max().copied()?;
        votes.into_iter().find(|(_, count)| *count == most).map(|(groups, _)| groups)
    }

    /// How many nodes there are, on average of what partners count; none if too few told it. The
    /// highest quarter and the lowest do not count: one that is wrong, by whatever much, moves the
    /// mean by no more than others differ.
    #[must_use]
    pub fn mean(&self) -> Option<u32> {
        let counts = self.heard.iter().filter_map(|word| word.told.count);
        let mut counts: Vec<u64> = counts.map(u64::from).collect();
        if counts.len() < COUNTS_MIN {
            return None;
        }
        counts.sort_unstable();
        let cut = if mutant!("slices_every_count_counts") { 0 } else { counts.len() / 4 };
        let middle = &counts[cut..counts.len() - cut];
        let mean = middle.iter().sum::<u64>() / u64::try_from(middle.len()).expect("few are kept");
        Some(u32::try_from(mean).expect("a mean of numbers of 32 bits"))
    }

    /// What a node tells that counts `own` itself.
    #[must_use]
    pub fn blended(&self, own: u32) -> u32 {
        let blend = |mean: u32| (u64::from(own) + 3 * u64::from(mean)) / 4;
        let told = self.mean().map_or(u64::from(own), blend);
        u32::try_from(told).expect("a mean of numbers of 32 bits")
    }

    /// A period has passed; `own` is what the node itself counts, `least` what is known of the
    /// smallest slice.
    pub fn on_period(&mut self, own: Option<u32>, least: Option<Least>) -> Option<Changed> {
        self.since = self.since.saturating_add(1);
        let age_max = self.bounds.age_max;
        self.heard.iter_mut().for_each(|word| word.age = word.age.saturating_add(1));
        self.heard.retain(|word| word.age <= age_max);
        self.together = if self.heard.is_empty() { 0 } else { self.together.saturating_add(1) };
        let Some(groups) = self.groups else {
            // Where nobody has a number this node is among the first; of few the most are right.
            let to = self.majority().unwrap_or(Groups::ONE);
            return (self.since >= age_max).then(|| self.change(to));
        };
        let to = self.wanted(groups, own, least).unwrap_or(groups);
        self.wanted = match self.wanted {
            _ if to == groups => None,
            Some((wanted, times)) if wanted == to => Some((to, times.saturating_add(1))),
            _ => Some((to, 1)),
        };
        let (to, times) = self.wanted?;
        let is_due = self.is_filled() || mutant!("slices_unrestrained");
        (is_due && times >= self.bounds.equal).then(|| self.change(to))
    }

    /// The number that is right now, by what is known; none if too little is.
    fn wanted(&self, groups: Groups, own: Option<u32>, least: Option<Least>) -> Option<Groups> {
        let nodes = if mutant!("slices_own_count") { own? } else { self.mean()? };
        if self.bounds.floor > 0 && !mutant!("slices_by_the_mean") {
            let is_crowded = self.bounds.is_crowded(nodes, groups);
            let own = floor::wanted(least, groups, self.bounds.floor, is_crowded);
            // Others may have heard of a small one that this node has not.
            return own.or_else(|| self.majority());
        }
        if !self.bounds.fits(nodes, groups) {
            return Some(self.bounds.fitting(nodes, groups));
        }
        self.majority().filter(|most| self.bounds.fits(nodes, *most))
    }

    fn change(&mut self, to: Groups) -> Changed {
        invariant!(self.groups != Some(to), "a change is to another number");
        invariant!(to.is_sound(), "there are not too many slices");
        let changed = Changed { from: self.groups, to };
        (self.groups, self.wanted, self.since) = (Some(to), None, 0);
        changed
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        assert!(self.heard.len() <= HEARD_MAX, "few words are kept");
        assert!(self.groups.is_none_or(Groups::is_sound), "there are not too many slices");
        let is_other = self.wanted.is_none_or(|(to, _)| Some(to) != self.groups);
        assert!(is_other, "what is wanted is another number");
    }
}

const _: () = assert!(Bounds::USUAL.is_sound() && VOTES <= COUNTS_MIN && COUNTS_MIN < HEARD_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    fn told(count: u32, groups: Option<Groups>) -> Profile {
        Profile { count: Some(count), groups, least: None }
    }

    /// In a small view the same one is met again and again.
    #[test]
    fn a_partner_has_one_vote_however_often_it_tells() {
        let (few, many) = (Groups::power(2), Groups::power(5));
        let mut estimate = Estimate::new(Bounds::USUAL);
        for _ in 0..5 {
            assert!(estimate.hear(NodeId(1), told(300, few)).is_none(), "one is not three");
        }
        estimate.hear(NodeId(2), told(300, many));
        let changed = estimate.hear(NodeId(3), told(300, many));
        assert_eq!(changed.map(|changed| Some(changed.to)), Some(many));
        estimate.check();
    }

    #[test]
    fn who_hears_of_a_number_takes_it_however_few_have_told() {
        let groups = Groups::power(5);
        for heard in [groups, None] {
            let mut estimate = Estimate::new(Bounds::USUAL);
            estimate.hear(NodeId(1), told(300, heard));
            let changed = (0..Bounds::USUAL.age_max).filter_map(|_| estimate.on_period(None, None));
            let to: Vec<Groups> = changed.map(|changed| changed.to).collect();
            assert_eq!(to, [heard.unwrap_or(Groups::ONE)]);
        }
    }

    #[test]
    fn who_lies_about_the_number_of_nodes_moves_nobody() {
        let groups = Groups::power(5);
        for lie in [0, u32::MAX] {
            let mut estimate = Estimate::new(Bounds::USUAL);
            for partner in 0..60_u64 {
                let count = if partner % 6 == 0 { lie } else { 290 + (partner % 20) as u32 };
                estimate.hear(NodeId(partner % 30), told(count, groups));
            }
            let mean = estimate.mean().expect("enough have told it");
            assert!((290..310).contains(&mean), "{mean} nodes, where one in six says {lie}");
        }
    }
}
