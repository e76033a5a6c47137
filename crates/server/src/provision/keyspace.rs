//! A keyspace that is to be born with its cluster, in one word.

use crate::config::values::Size;
use crate::ring::founding::STATIC_VIEWS;
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::{CatalogRefusal, Keyspace as Record, Settings};
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::Durability;
use quorate_node::catalog::{CatalogError, Engine, Keyspace, Mode, Order, REPLICAS_DEFAULT};
use quorate_node::factory::catalog::positions;
use quorate_node::factory::causal;
use std::str::FromStr;

/// What a keyspace is written as.
pub const FORM: &str = "NAME=ENGINE[,replicas=1|3|5|7][,durability=LEVEL][,value=SIZE]\
                        [,order=hash|key][,mode=atomic|eventual], or NAME=causal with any of its \
                        settings";

/// The engine of a keyspace that is made without a word on it.
pub const ENGINE_DEFAULT: &str = "linearizable";

/// Settings as the catalog takes them from those that a person has written: lengths may have a
/// unit. What each may be is the catalog's business.
pub fn spelt(written: impl IntoIterator<Item = (String, String)>) -> Settings {
    let one = |(name, text): (String, String)| {
        let size = text.parse::<Size>().ok().filter(|_| name == "value");
        (name, size.map_or(text, |Size(bytes)| bytes.to_string()))
    };
    written.into_iter().map(one).collect()
}

/// A keyspace to be born with the cluster, written as [`FORM`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceSpec {
    /// Its name.
    pub name: String,
    /// Its engine.
    pub engine: Engine,
    /// Its durability; that of the cluster if not given.
    pub durability: Option<Durability>,
    /// Its longest value; the default if not given.
    pub value: Option<Size>,
    /// How many hosts hold each key.
    pub replicas: u8,
    /// Where its keys stand on the ring.
    pub order: Order,
    /// What its operations wait for.
    pub mode: Mode,
    /// What else is set, of an engine with positions.
    pub settings: Settings,
    /// Whether it has no consistent quorums. No text says so: `lab` alone sets it, and hosts serve
    /// it only with `dev.unsafe_static_views`.
    pub static_views: bool,
}

impl KeyspaceSpec {
    /// The keyspace of a cluster that was asked for none.
    #[must_use]
    pub fn standard() -> KeyspaceSpec {
        KeyspaceSpec::new("default", Engine::Linearizable)
    }

    /// One keyspace of each engine there is, for so many hosts: the usual one, and others that are
    /// called like their engines.
    #[must_use]
    pub fn of_each_engine(hosts: u32) -> Vec<KeyspaceSpec> {
        // A key of an engine with positions always has all its replicas.
        let replicas = u8::try_from(hosts).unwrap_or(u8::MAX).min(REPLICAS_DEFAULT);
        let causal = KeyspaceSpec::new("causal", Engine::Causal);
        vec![KeyspaceSpec::standard(), KeyspaceSpec { replicas, ..causal }]
    }

    fn new(name: &str, engine: Engine) -> KeyspaceSpec {
        KeyspaceSpec {
            name: name.to_owned(),
            engine,
            durability: None,
            value: None,
            replicas: REPLICAS_DEFAULT,
            order: Order::default(),
            mode: Mode::default(),
            settings: Settings::new(),
            static_views: false,
        }
    }

    /// The keyspace born on this ring; `durability` is that of the cluster.
    ///
    /// # Errors
    /// It breaks a rule of the catalog.
    pub fn founded(
        &self,
        lane: LaneId,
        durability: Durability,
        ring: &Ring,
    ) -> Result<Keyspace, CatalogError> {
        let (name, replicas) = (&self.name, self.replicas);
        let durability = self.durability.unwrap_or(durability);
        if self.engine == Engine::Causal {
            return self.placed(lane, durability, ring);
        }
        let mut keyspace = Keyspace::founded(name, lane, self.engine, durability, replicas, ring)?;
        if let Some(Size(bytes)) = self.value {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            keyspace = keyspace.with_value_bytes_max(bytes)?;
        }
        let keyspace = keyspace.with_order_and_mode(self.order, self.mode);
        Ok(Keyspace { static_views: self.static_views, ..keyspace })
    }
}

impl KeyspaceSpec {
    /// The keyspace of an engine with positions, born on this ring.
    fn placed(
        &self,
        lane: LaneId,
        durability: Durability,
        ring: &Ring,
    ) -> Result<Keyspace, CatalogError> {
        let refused = |why: CatalogRefusal| CatalogError::Settings {
            name: self.name.clone(),
            why: why.to_string(),
        };
        let mut asked = self.settings.clone();
        let mut set = |name: &str, value: String| asked.insert(name.to_owned(), value);
        set("durability", durability.to_string());
        set("replicas", self.replicas.to_string());
        if let Some(Size(bytes)) = self.value {
            set("value", bytes.to_string());
        }
        let mut all = causal::rules::RULES.complete(&asked).map_err(refused)?;
        if !self.settings.contains_key("positions") {
            let count = all["positions"].parse().unwrap_or(1);
            let count = positions::usual_count(count, usize::from(self.replicas));
            all.insert(String::from("positions"), count.to_string());
        }
        positions::founding(ring, &all).map_err(refused)?;
        let engine = self.engine.to_string();
        Keyspace::of(&Record::new(&self.name, lane, &engine, all, 1), Some(ring))
    }
}

impl FromStr for KeyspaceSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<KeyspaceSpec, String> {
        let expected = || format!("expected {FORM}");
        let word = |error: CatalogError| error.to_string();
        let mut parts = text.split(',');
        let (name, engine) =
            parts.next().and_then(|part| part.split_once('=')).ok_or_else(expected)?;
        let mut spec = KeyspaceSpec::new(name, engine.parse().map_err(word)?);
        for part in parts {
            match part.split_once('=') {
                Some(("durability", level)) => spec.durability = Some(level.parse()?),
                Some(("value", size)) => spec.value = Some(size.parse()?),
                Some(("replicas", count)) => {
                    spec.replicas = count.parse().map_err(|_| expected())?;
                }
                Some((name, value)) if spec.engine == Engine::Causal => {
                    spec.settings.insert(name.to_owned(), value.to_owned());
                }
                Some(("order", order)) => spec.order = order.parse().map_err(word)?,
                Some(("mode", mode)) => spec.mode = mode.parse().map_err(word)?,
                Some((STATIC_VIEWS, _)) => return Err(static_views()),
                _ => return Err(expected()),
            }
        }
        if spec.engine == Engine::Causal {
            // So that what cannot be is refused where it is written.
            let mut asked = spec.settings.clone();
            asked.insert(String::from("replicas"), spec.replicas.to_string());
            let asked = causal::rules::RULES.complete(&asked);
            asked.map_err(|refusal| refusal.to_string())?;
        }
        Ok(spec)
    }
}

fn static_views() -> String {
    format!(
        "{STATIC_VIEWS} gives up linearizability to measure what it costs: only the clusters that \
         `quorate lab` makes for itself may have it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_asks_for_static_views() {
        let refused = "x=linearizable,unsafe_static_views=true".parse::<KeyspaceSpec>();
        assert_eq!(refused, Err(static_views()));
    }

    #[test]
    fn keyspaces_are_described_in_one_word() {
        let spec: KeyspaceSpec =
            "cache=linearizable,durability=periodic=20ms,value=1MiB,replicas=5,order=key"
                .parse()
                .expect("valid");
        assert_eq!(spec.name, "cache");
        assert_eq!(spec.durability, Some(Durability::Periodic { every_ms: 20 }));
        assert_eq!(spec.value, Some(Size(1 << 20)));
        assert_eq!((spec.replicas, spec.order, spec.mode), (5, Order::Key, Mode::Atomic));
        assert_eq!("default=linearizable".parse(), Ok(KeyspaceSpec::standard()));
        let text = "carts=causal,replicas=5,w=4,siblings=newest,durability=memory";
        let spec: KeyspaceSpec = text.parse().expect("valid");
        assert_eq!((spec.engine, spec.replicas), (Engine::Causal, 5));
        assert_eq!(spec.settings["siblings"], "newest");
        for bad in [
            "x=causal,w=4",
            "x=causal,order=key",
            "x=causal,siblings=all",
            "",
            "x",
            "x=fast",
            "x=linearizable,ttl=1",
            "x=linearizable,order=up",
            "x=linearizable,value=huge",
        ] {
            assert!(bad.parse::<KeyspaceSpec>().is_err(), "{bad}");
        }
    }
}
