//! The keyspaces by name, and what listings of each promise.

use super::problem::{self, Problem};
use quorate_api::v1::{ScanOrder, ScanPromise};
use quorate_node::catalog::{Catalog, Engine, Keyspace as Entry, Order};
use quorate_node::factory::linearizable;
use std::sync::Arc;

/// A keyspace as the API sees it.
#[derive(Clone, Debug)]
pub struct Keyspace {
    /// Its number, by which it is called.
    pub number: usize,
    /// What the catalog has of it.
    pub entry: Entry,
}

/// All keyspaces.
#[derive(Clone, Debug, Default)]
pub struct Keyspaces(Vec<Arc<Keyspace>>);

impl Keyspaces {
    /// The keyspaces of a catalog.
    pub fn of(catalog: &Catalog) -> Keyspaces {
        let keyspace = |(number, entry): (usize, &Entry)| Keyspace { number, entry: entry.clone() };
        Keyspaces(catalog.keyspaces.iter().enumerate().map(keyspace).map(Arc::new).collect())
    }

    /// The keyspace of this name.
    pub fn find(&self, name: &str) -> Result<&Arc<Keyspace>, Problem> {
        let names = || self.0.iter().map(|known| known.entry.name.as_str()).collect::<Vec<_>>();
        if name.is_empty() {
            let right = format!("name one of: {}", names().join(", "));
            return Err(problem::invalid("keyspace", "no keyspace is named", right));
        }
        let found = self.0.iter().find(|known| known.entry.name == name);
        found.ok_or_else(|| problem::no_keyspace(name, &names()))
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Keyspace> {
        self.0.iter().map(|keyspace| &**keyspace)
    }

    /// The longest value that any of them takes.
    pub fn value_bytes_max(&self) -> usize {
        self.0.iter().map(|keyspace| keyspace.entry.value_bytes_max).max().unwrap_or(0)
    }
}

impl Keyspace {
    /// Where a key stands on the ring.
    pub fn position(&self, key: &[u8]) -> u64 {
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
                 meanwhile may be or not; each page is as a majority of replicas held it while it \
                 was read, the listing as a whole is no snapshot, and each value is read by itself"
            }
        };
        ScanPromise {
            engine: self.entry.engine.to_string(),
            order: self.order().into(),
            is_snapshot: false,
            is_complete: true,
            may_repeat: false,
            text: text.to_owned(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use quorate_api::v1::Kind;
    use quorate_kernel::ids::{LaneId, NodeId};
    use quorate_kernel::storage::Durability;
    use quorate_node::catalog::Mode;

    /// Two keyspaces: `default` by hash, `events` in order.
    pub(crate) fn sample() -> Keyspaces {
        let keyspace = |name: &str, lane, order| {
            let members = [NodeId(1)];
            let (engine, durability) = (Engine::Linearizable, Durability::Sync);
            Entry::on_one_group(name, LaneId(lane), engine, durability, &members)
                .expect("it keeps the rules")
                .with_order_and_mode(order, Mode::Atomic)
        };
        let keyspaces =
            vec![keyspace("default", 1, Order::Hash), keyspace("events", 2, Order::Key)];
        Keyspaces::of(&Catalog { keyspaces })
    }

    #[test]
    fn a_name_that_is_not_there_is_told_what_is() {
        let all = sample();
        assert_eq!(all.find("events").expect("it is there").number, 1);
        let unknown = all.find("event").expect_err("there is none");
        assert_eq!(unknown.kind(), Kind::NoKeyspace);
        assert_eq!(unknown.right, "there are: default, events");
        assert_eq!(all.find("").expect_err("no name").kind(), Kind::Invalid);
    }
}
