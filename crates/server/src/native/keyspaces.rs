//! The keyspaces by name, as they are at the moment, and what listings of each promise.

use super::problem::{self, Problem};
use quorate_api::v1::{ScanOrder, ScanPromise};
use quorate_node::catalog::{Engine, Order};
use quorate_node::factory::{causal, linearizable};
use std::sync::Arc;

pub use crate::host::Served as Keyspace;

/// All keyspaces that the host serves at the moment; none while it does not know which there are.
#[derive(Clone, Debug)]
pub struct Keyspaces(pub Option<Arc<[Arc<Keyspace>]>>);

impl Keyspaces {
    /// The keyspace of this name.
    pub fn find(&self, name: &str) -> Result<&Arc<Keyspace>, Problem> {
        let all = self.0.as_ref().ok_or_else(problem::not_learnt)?;
        let names = || all.iter().map(|known| known.entry.name.as_str()).collect::<Vec<_>>();
        if name.is_empty() {
            let right = format!("name one of: {}", names().join(", "));
            return Err(problem::invalid("keyspace", "no keyspace is named", right));
        }
        let found = all.iter().find(|known| known.entry.name == name);
        found.ok_or_else(|| problem::no_keyspace(name, &names()))
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

impl Keyspace {
    /// Where a key stands on the ring.
    pub fn position(&self, key: &[u8]) -> u64 {
        if self.entry.engine == Engine::Causal {
            return causal::keys::hash_of_key(key);
        }
        let order = match self.entry.order {
            Order::Hash => linearizable::Order::Hash,
            Order::Key => linearizable::Order::Key,
        };
        order.position(key)
    }

    /// In what order keys are listed.
    pub fn order(&self) -> ScanOrder {
        match self.entry.order {
            Order::Hash => ScanOrder::Hash,
            Order::Key => ScanOrder::Key,
        }
    }

    /// What a listing promises.
    pub fn promise(&self) -> ScanPromise {
        let text = match self.entry.engine {
            Engine::Linearizable => {
                "a key that is there throughout is listed; a key that is written or deleted \
                 meanwhile may be or not, but what a page has shown no later read denies; the \
                 listing as a whole is no snapshot, and each value is read by itself"
            }
            Engine::Causal => {
                "each part of the listing is what one replica has: a key whose last write has \
                 reached that replica is listed as it was left there, a write that is still on \
                 its way may be missing; the listing as a whole is no snapshot, and each key's \
                 values are read by themselves"
            }
        };
        // What one replica has not heard of yet is not listed, however long ago it was written.
        let is_complete = self.entry.engine == Engine::Linearizable;
        ScanPromise {
            engine: self.entry.engine.to_string(),
            order: self.order().into(),
            is_snapshot: false,
            is_complete,
            may_repeat: false,
            text: text.to_owned(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::metrics::KeyspaceCells;
    use quorate_api::v1::Kind;
    use quorate_kernel::ids::{LaneId, NodeId};
    use quorate_kernel::storage::Durability;
    use quorate_node::catalog::{Keyspace as Entry, Mode};

    /// Three keyspaces: `default` by hash, `events` in order, `carts` with siblings.
    pub(crate) fn sample() -> Keyspaces {
        let keyspace = |name: &str, lane, order| {
            let members = [NodeId(1)];
            let (engine, durability) = (Engine::Linearizable, Durability::Sync);
            let entry = Entry::on_one_group(name, LaneId(lane), engine, durability, &members)
                .expect("it keeps the rules")
                .with_order_and_mode(order, Mode::Atomic);
            let cells = KeyspaceCells::new(name, "linearizable", durability, 1);
            Arc::new(Keyspace { entry, cells: Arc::new(cells) })
        };
        let (engine, durability) = (Engine::Causal, Durability::Sync);
        let entry = Entry::joined("carts", LaneId(6), engine, durability, 3);
        let entry = entry.expect("it keeps the rules");
        let cells = Arc::new(KeyspaceCells::new("carts", "causal", durability, 3));
        let carts = Arc::new(Keyspace { entry, cells });
        let all = [keyspace("default", 4, Order::Hash), keyspace("events", 5, Order::Key), carts];
        Keyspaces(Some(Arc::new(all)))
    }

    #[test]
    fn a_name_that_is_not_there_is_told_what_is() {
        let all = sample();
        assert_eq!(all.find("events").expect("it is there").entry.lane, LaneId(5));
        let unknown = all.find("event").expect_err("there is none");
        assert_eq!(unknown.kind(), Kind::NoKeyspace);
        assert_eq!(unknown.right, "there are: default, events, carts");
        assert_eq!(all.find("").expect_err("no name").kind(), Kind::Invalid);
        let unlearnt = Keyspaces(None).find("events").expect_err("nothing is known");
        assert_eq!((unlearnt.kind(), unlearnt.may_have_applied), (Kind::NoQuorum, false));
    }
}
