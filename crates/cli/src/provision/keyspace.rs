//! A keyspace that is to be born with its cluster, in one word.

use quorate_gateway::units::spelt;
use quorate_host::engines;
use quorate_kernel::engine::{self, Engine, Placement};
use quorate_kernel::keyspace::{CatalogRefusal, NewKeyspace, Settings, is_name};
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::Durability;
use quorate_protocols::catalog::orders;
use quorate_protocols::catalog::partitions::seats;

/// What a keyspace is written as.
pub const FORM: &str = "NAME=ENGINE[,SETTING=VALUE]...";

/// The keyspace of a cluster that was asked for none.
#[must_use]
pub fn standard() -> NewKeyspace {
    let (name, engine) = (String::from("default"), String::from(engines::usual()));
    NewKeyspace { name, engine, settings: Settings::new() }
}

/// One keyspace of each engine there is, for so many hosts: the usual one, and others that are
/// called like their engines.
#[must_use]
pub fn of_each_engine(hosts: u32) -> Vec<NewKeyspace> {
    let other = |engine: &&Engine| {
        let usual = engine.settings.iter().find(|setting| setting.name == "replicas");
        let usual = usual.and_then(|setting| setting.default.parse::<u32>().ok()).unwrap_or(1);
        let mut settings = Settings::new();
        if engine.placement == Placement::Partitions {
            // A key of such an engine always has all its replicas.
            settings.insert(String::from("replicas"), usual.min(hosts).to_string());
        }
        NewKeyspace { name: engine.name.to_owned(), engine: engine.name.to_owned(), settings }
    };
    std::iter::once(standard()).chain(engines::all()[1..].iter().map(other)).collect()
}

/// Reads a keyspace that is written as [`FORM`] says.
///
/// # Errors
/// What is wrong, and what would be right.
pub fn parse(text: &str) -> Result<NewKeyspace, String> {
    let expected = || format!("expected {FORM}");
    let mut parts = text.split(',');
    let first = parts.next().and_then(|part| part.split_once('='));
    let (name, engine) = first.ok_or_else(expected)?;
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').ok_or_else(expected)?;
        Ok((name.to_owned(), value.to_owned()))
    };
    let settings = spelt(parts.map(pair).collect::<Result<Vec<_>, String>>()?);
    // So that what cannot be is refused where it is written.
    let known = engine::find(engines::all(), engine).map_err(|refusal| refusal.to_string())?;
    known.complete(&settings).map_err(|refusal| refusal.to_string())?;
    Ok(NewKeyspace { name: name.to_owned(), engine: engine.to_owned(), settings })
}

/// The keyspace with all its settings, to be born on this ring; `durability` is that of the
/// cluster.
///
/// # Errors
/// It breaks a rule of the catalog.
pub fn founded(
    asked: &NewKeyspace,
    durability: Durability,
    ring: &Ring,
) -> Result<NewKeyspace, CatalogRefusal> {
    let NewKeyspace { name, engine, mut settings } = asked.clone();
    if !is_name(&name) {
        return Err(CatalogRefusal::Name { name });
    }
    let found = engine::find(engines::all(), &engine)?;
    settings.entry(String::from("durability")).or_insert_with(|| durability.to_string());
    let settings = orders::complete(found, &settings)?;
    if found.placement == Placement::Partitions {
        seats::founding(ring, &settings)?;
    }
    Ok(NewKeyspace { name, engine, settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyspaces_are_described_in_one_word() {
        let text = "cache=linearizable,durability=periodic=20ms,value=1MiB,replicas=5,order=key";
        let cache = parse(text).expect("valid");
        let setting = |name: &str| cache.settings[name].as_str();
        assert_eq!((cache.name.as_str(), setting("durability")), ("cache", "periodic=20ms"));
        assert_eq!((setting("value"), setting("order")), ("1048576", "key"));
        assert_eq!(parse("default=linearizable"), Ok(standard()));
        let carts = parse("carts=causal,replicas=5,w=4,siblings=newest,durability=memory");
        assert_eq!(carts.expect("valid").settings["siblings"], "newest");
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
            "x=linearizable,replicas=2",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
