//! The keyspaces by name, as they are at the moment, and what listings of each promise.

use super::problem::{self, Problem};
use quorate_api::v1::{ScanOrder, ScanPromise};
use quorate_kernel::engine::Capability;
use std::sync::Arc;

pub use quorate_host::Served as Keyspace;

/// All keyspaces that the host serves at the moment; none while it does not know which there are.
#[derive(Clone, Debug)]
pub struct Keyspaces(pub Option<Arc<[Arc<Keyspace>]>>);

impl Keyspaces {
    /// The keyspace of this name.
    pub fn find(&self, name: &str) -> Result<&Arc<Keyspace>, Problem> {
        let all = self.0.as_ref().ok_or_else(problem::not_learnt)?;
        let names = || all.iter().map(|known| known.keyspace().name.as_str()).collect::<Vec<_>>();
        if name.is_empty() {
            let right = format!("name one of: {}", names().join(", "));
            return Err(problem::invalid("keyspace", "no keyspace is named", right));
        }
        let found = all.iter().find(|known| known.keyspace().name == name);
        found.ok_or_else(|| problem::no_keyspace(name, &names()))
    }

    /// The keyspace of this name, whose engine must have trees; without a name the first such one.
    pub fn tree(&self, name: &str) -> Result<&Arc<Keyspace>, Problem> {
        let found = if name.is_empty() {
            let all = self.0.as_ref().ok_or_else(problem::not_learnt)?;
            let first = all.iter().find(|known| known.entry.can(Capability::Tree));
            first.ok_or_else(|| {
                let right = "make one whose engine has trees by Admin.CreateKeyspace";
                problem::unsupported("no keyspace has a tree", right)
            })?
        } else {
            self.find(name)?
        };
        let lacking = found.entry.require(Capability::Tree, "a call on trees", None);
        lacking.map(|()| found).map_err(|lacking| problem::lacking(&lacking))
    }

    /// All of them, in the order of their lanes.
    pub fn iter(&self) -> impl Iterator<Item = &Keyspace> {
        self.0.iter().flat_map(|all| all.iter()).map(|keyspace| &**keyspace)
    }

    /// The longest value that any of them takes.
    pub fn value_bytes_max(&self) -> usize {
        self.iter().map(|keyspace| keyspace.entry.value_bytes_max).max().unwrap_or(0)
    }
}

/// In what order the keys of a keyspace are listed.
pub fn order(keyspace: &Keyspace) -> ScanOrder {
    if keyspace.entry.is_ordered() { ScanOrder::Key } else { ScanOrder::Hash }
}

/// What a listing of its keys promises.
pub fn promise(keyspace: &Keyspace) -> ScanPromise {
    let listing = keyspace.entry.engine.listing;
    ScanPromise {
        engine: keyspace.entry.engine.name.to_owned(),
        order: order(keyspace).into(),
        is_snapshot: false,
        is_complete: listing.is_complete,
        may_repeat: false,
        text: listing.text.to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use quorate_api::v1::Kind;
    use quorate_host::samples;
    use quorate_kernel::ids::LaneId;

    /// Three keyspaces: `default` by hash, `events` in order, `carts` with siblings.
    pub(crate) fn sample() -> Keyspaces {
        let (registers, siblings) = ("linearizable", "causal");
        let all = [
            ("default", registers, &[][..], LaneId(4)),
            ("events", registers, &[("order", "key")], LaneId(5)),
            ("carts", siblings, &[], LaneId(6)),
        ];
        Keyspaces(Some(
            all.map(|(name, engine, set, lane)| Arc::new(samples::served(name, engine, set, lane)))
                .into(),
        ))
    }

    #[test]
    fn a_name_that_is_not_there_is_told_what_is() {
        let all = sample();
        assert_eq!(all.find("events").expect("it is there").keyspace().lane, LaneId(5));
        let unknown = all.find("event").expect_err("there is none");
        assert_eq!(unknown.kind(), Kind::NoKeyspace);
        assert_eq!(unknown.right, "there are: default, events, carts");
        assert_eq!(all.find("").expect_err("no name").kind(), Kind::Invalid);
        assert_eq!(all.tree("").expect_err("no tree").kind(), Kind::Unsupported);
        assert_eq!(all.tree("events").expect_err("no tree").kind(), Kind::Unsupported);
        assert_eq!(all.tree("event").expect_err("there is none").kind(), Kind::NoKeyspace);
        let served = |name, engine, lane| Arc::new(samples::served(name, engine, &[], lane));
        let trees = Keyspaces(Some(Arc::new([
            served("default", "linearizable", LaneId(4)),
            served("config", "coordination", LaneId(5)),
            served("locks", "coordination", LaneId(6)),
        ])));
        assert_eq!(trees.tree("").expect("the first").keyspace().lane, LaneId(5));
        assert_eq!(trees.tree("locks").expect("by name").keyspace().lane, LaneId(6));
        let unlearnt = Keyspaces(None).find("events").expect_err("nothing is known");
        assert_eq!((unlearnt.kind(), unlearnt.may_have_applied), (Kind::Overloaded, false));
    }
}
