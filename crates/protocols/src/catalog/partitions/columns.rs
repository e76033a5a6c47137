//! Columns: why a keyspace of partitions can always shrink to as few hosts as it has replicas.
//!
//! Where the number of partitions is a multiple of the replicas, every `replicas`-th partition
//! makes a **column**. Partitions near each other are of distinct columns, so a node that has
//! partitions of one column alone can have all of them. In each column one such node is the
//! **keeper**; all others are **guests**, and may be anywhere. While only guests leave their
//! columns, a guest can give each of its partitions to the keeper of its column at once, for the
//! keeper has none near it; and where a keeper leaves, a guest gives up what it has elsewhere and
//! takes its place.
//!
//! Without that a map can be a dead end. Call a partition odd if its node is not the one `replicas`
//! partitions before. With one host more than replicas, a single replacement moves one odd place by
//! `replicas` partitions over places that are not odd, or removes two of one column that meet; so
//! their columns, read round the end with equal neighbours cancelled, are the same for ever. Four
//! hosts in turn read 0, 1, 2, 0, 1, 2, ..., and three hosts read nothing.

use alloc::vec::Vec;
use core::cmp::Reverse;
use quorate_kernel::ids::NodeId;

/// Which node keeps which column.
pub(super) struct Columns {
    /// Empty if the partitions make no columns, or there are too few nodes.
    keepers: Vec<NodeId>,
}

impl Columns {
    /// The columns of these places, kept by some of these nodes: by those with the fewest
    /// partitions elsewhere, and of those by the ones with the most in the column.
    pub fn of(places: &[NodeId], replicas: usize, nodes: &[NodeId]) -> Columns {
        if !places.len().is_multiple_of(replicas) || nodes.len() < replicas {
            return Columns { keepers: Vec::new() };
        }
        let mut counts: Vec<(NodeId, Vec<usize>)> =
            nodes.iter().map(|node| (*node, alloc::vec![0; replicas])).collect();
        counts.sort_unstable();
        for (partition, node) in places.iter().enumerate() {
            if let Ok(at) = counts.binary_search_by_key(node, |(node, _)| *node) {
                counts[at].1[partition % replicas] += 1;
            }
        }
        let mut keepers: Vec<Option<NodeId>> = alloc::vec![None; replicas];
        for _ in 0..replicas {
            let open = |column: &usize| keepers[*column].is_none();
            let free = counts.iter().filter(|(node, _)| !keepers.contains(&Some(*node)));
            let pairs = free.flat_map(|(node, counts)| {
                let all: usize = counts.iter().sum();
                let pair = move |column: usize| {
                    (all - counts[column], Reverse(counts[column]), *node, column)
                };
                (0..replicas).filter(open).map(pair)
            });
            let (_, _, node, column) = pairs.min().expect("there are nodes enough");
            keepers[column] = Some(node);
        }
        Columns { keepers: keepers.into_iter().flatten().collect() }
    }

    /// The keeper of a partition's column.
    pub fn keeper(&self, partition: usize) -> Option<NodeId> {
        self.keepers.get(partition.checked_rem(self.keepers.len())?).copied()
    }

    /// Whether a node keeps a column.
    pub fn is_keeper(&self, node: NodeId) -> bool {
        self.keepers.contains(&node)
    }

    /// Whether a node has a partition there without ado: a keeper only in its own column.
    pub fn admits(&self, partition: usize, node: NodeId) -> bool {
        !self.is_keeper(node) || self.keeper(partition) == Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(list: &[u64]) -> Vec<NodeId> {
        list.iter().copied().map(NodeId).collect()
    }

    #[test]
    fn keepers_are_those_with_nothing_elsewhere_and_the_most_in_their_column() {
        let places = nodes(&[4, 1, 2, 3, 4, 2, 3, 1, 5, 3, 1, 2]);
        let columns = Columns::of(&places, 3, &nodes(&[1, 2, 3, 4, 5, 6]));
        assert_eq!((0..3).filter_map(|p| columns.keeper(p)).collect::<Vec<_>>(), nodes(&[3, 1, 2]));
        assert!(columns.admits(3, NodeId(3)) && !columns.admits(4, NodeId(3)));
        assert!((0..12).all(|partition| columns.admits(partition, NodeId(4))), "a guest");
        let without = Columns::of(&places, 3, &nodes(&[1, 2, 4]));
        assert_eq!(without.keeper(6), Some(NodeId(4)), "it has one in the column, one elsewhere");
    }

    #[test]
    fn there_may_be_no_columns() {
        let places = nodes(&[1, 2, 3, 4]);
        for columns in [
            Columns::of(&places, 3, &nodes(&[1, 2, 3, 4])),
            Columns::of(&places, 4, &nodes(&[1, 2, 3])),
        ] {
            assert_eq!(columns.keeper(0), None);
            assert!(columns.admits(0, NodeId(1)));
        }
    }
}
