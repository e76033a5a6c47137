//! What a cluster is to be, drawn and written as directories.

use super::doors::{Doors, write_addresses};
use super::error::ProvisionError;
use crate::config::values::Size;
use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
use quorate_kernel::limits::GROUP_MEMBERS_MAX;
use quorate_kernel::storage::Durability;
use quorate_node::catalog::{Catalog, CatalogError, Engine, Keyspace};
use quorate_store::{HostRecord, Identity, KeyspaceRecord, Secret};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Lanes below this one are kept for what every node has, such as the membership.
const LANE_FIRST: u32 = 16;

/// A keyspace to be born with the cluster: `NAME=ENGINE[,durability=LEVEL][,value=SIZE]`.
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
}

impl KeyspaceSpec {
    /// The keyspace of a cluster that was asked for none.
    #[must_use]
    pub fn standard() -> KeyspaceSpec {
        let name = String::from("default");
        KeyspaceSpec { name, engine: Engine::Linearizable, durability: None, value: None }
    }
}

impl FromStr for KeyspaceSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<KeyspaceSpec, String> {
        const EXPECTED: &str = "expected NAME=ENGINE[,durability=LEVEL][,value=SIZE]";
        let mut parts = text.split(',');
        let (name, engine) = parts.next().and_then(|part| part.split_once('=')).ok_or(EXPECTED)?;
        let engine = engine.parse().map_err(|error: CatalogError| error.to_string())?;
        let mut spec =
            KeyspaceSpec { name: name.to_owned(), engine, durability: None, value: None };
        for part in parts {
            match part.split_once('=') {
                Some(("durability", level)) => spec.durability = Some(level.parse()?),
                Some(("value", size)) => spec.value = Some(size.parse()?),
                _ => return Err(String::from(EXPECTED)),
            }
        }
        Ok(spec)
    }
}

/// A cluster to be born.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The doors of each host, in the order of their numbers.
    pub hosts: Vec<Doors>,
    /// The keyspaces.
    pub keyspaces: Vec<KeyspaceSpec>,
    /// The durability of keyspaces that do not say.
    pub durability: Durability,
}

/// The directory of a host below that of its cluster.
#[must_use]
pub fn host_directory(output: &Path, number: u32) -> PathBuf {
    output.join(format!("host-{number}"))
}

/// Writes the directories `host-1` and so on, and answers the first host's identity. The first host
/// comes last: where its directory is whole, all are.
///
/// # Errors
/// See [`ProvisionError`].
pub fn write(plan: &Plan, output: &Path) -> Result<Identity, ProvisionError> {
    let mut identity = draw(plan)?;
    for (record, doors) in identity.hosts.clone().iter().zip(&plan.hosts).rev() {
        (identity.host, identity.node) = (record.host, record.node);
        let directory = host_directory(output, record.host);
        quorate_store::create(&directory, &identity)?;
        write_addresses(&directory, doors, None)?;
    }
    Ok(identity)
}

/// Draws a cluster's ids and lays out its keyspaces.
fn draw(plan: &Plan) -> Result<Identity, ProvisionError> {
    let count = plan.hosts.len();
    if !(1..=GROUP_MEMBERS_MAX).contains(&count) {
        return Err(ProvisionError::HostCount { count });
    }
    for (index, doors) in plan.hosts.iter().enumerate() {
        if plan.hosts[..index].iter().any(|other| other.cluster == doors.cluster) {
            let message = String::from("two hosts cannot have the same address");
            return Err(ProvisionError::Address { address: doors.cluster.clone(), message });
        }
    }
    let hosts = (1..).zip(&plan.hosts).map(|(host, doors)| {
        let node = NodeId(u64::from_be_bytes(random()?));
        Ok(HostRecord { host, node, address: doors.cluster.clone() })
    });
    let hosts = hosts.collect::<Result<Vec<_>, ProvisionError>>()?;
    let members: Vec<NodeId> = hosts.iter().map(|record| record.node).collect();
    Ok(Identity {
        cluster: ClusterId(u128::from_be_bytes(random()?)),
        node: hosts[0].node,
        host: 1,
        secret: Secret(random()?),
        keyspaces: keyspaces(plan, &members)?,
        hosts,
    })
}

fn keyspaces(plan: &Plan, members: &[NodeId]) -> Result<Vec<KeyspaceRecord>, ProvisionError> {
    let mut catalog = Catalog::default();
    for (lane, spec) in (LANE_FIRST..).map(LaneId).zip(&plan.keyspaces) {
        let durability = spec.durability.unwrap_or(plan.durability);
        let mut keyspace =
            Keyspace::on_one_group(&spec.name, lane, spec.engine, durability, members)?;
        if let Some(Size(bytes)) = spec.value {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            keyspace = keyspace.with_value_bytes_max(bytes)?;
        }
        catalog.add(keyspace)?;
    }
    let record = |keyspace: Keyspace| KeyspaceRecord {
        name: keyspace.name,
        lane: keyspace.lane,
        engine: keyspace.engine.to_string(),
        durability: keyspace.durability,
        value_bytes_max: keyspace.value_bytes_max as u64,
        group: keyspace.first_view.id.group,
        view_version: keyspace.first_view.id.version,
        members: keyspace.first_view.members().to_vec(),
        settings: BTreeMap::new(),
    };
    Ok(catalog.keyspaces.into_iter().map(record).collect())
}

/// Bytes from the operating system's generator: ids must differ between machines and runs.
fn random<const N: usize>() -> Result<[u8; N], ProvisionError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| ProvisionError::Random(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(hosts: u32) -> Plan {
        let doors = |number| Doors::on_this_machine(7400, number).expect("free ports");
        Plan {
            hosts: (1..=hosts).map(doors).collect(),
            keyspaces: vec![KeyspaceSpec::standard()],
            durability: Durability::Sync,
        }
    }

    #[test]
    fn directories_agree_on_the_cluster_and_differ_in_who_they_are() {
        let output = tempfile::tempdir().expect("a temporary directory");
        let plan = plan(3);
        let first = write(&plan, output.path()).expect("an empty place");
        assert_eq!(first.host, 1);
        for (index, doors) in plan.hosts.iter().enumerate() {
            let directory = host_directory(output.path(), index as u32 + 1);
            let identity = quorate_store::identity_of(&directory).expect("it was written");
            assert_eq!(identity.host, index as u32 + 1);
            assert_eq!(identity.node, first.hosts[index].node);
            assert_eq!((identity.cluster, &identity.hosts), (first.cluster, &first.hosts));
            assert_eq!(identity.keyspaces, first.keyspaces);
            assert_eq!(identity.keyspaces[0].members.len(), 3);
            assert_eq!(identity.hosts[index].address, doors.cluster);
        }
        let again = write(&plan, output.path());
        assert!(matches!(again, Err(ProvisionError::Directory(_))), "nothing is written over");
    }

    #[test]
    fn plans_that_cannot_be_are_refused() {
        let output = tempfile::tempdir().expect("a temporary directory");
        let refused = |plan: &Plan| write(plan, output.path()).expect_err("refused");
        assert!(matches!(refused(&plan(0)), ProvisionError::HostCount { count: 0 }));
        assert!(matches!(refused(&plan(8)), ProvisionError::HostCount { count: 8 }));
        let mut twice = plan(2);
        twice.hosts[1] = twice.hosts[0].clone();
        assert!(matches!(refused(&twice), ProvisionError::Address { .. }));
        let mut doubled = plan(1);
        doubled.keyspaces.push(KeyspaceSpec::standard());
        assert!(matches!(refused(&doubled), ProvisionError::Catalog(_)));
        let left = std::fs::read_dir(output.path()).expect("it is there").count();
        assert_eq!(left, 0, "nothing was written");
    }

    #[test]
    fn keyspaces_are_described_in_one_word() {
        let spec: KeyspaceSpec =
            "cache=linearizable,durability=periodic=20ms,value=1MiB".parse().expect("valid");
        assert_eq!(spec.name, "cache");
        assert_eq!(spec.durability, Some(Durability::Periodic { every_ms: 20 }));
        assert_eq!(spec.value, Some(Size(1 << 20)));
        assert_eq!("default=linearizable".parse(), Ok(KeyspaceSpec::standard()));
        for bad in ["", "x", "x=fast", "x=linearizable,ttl=1", "x=linearizable,value=huge"] {
            assert!(bad.parse::<KeyspaceSpec>().is_err(), "{bad}");
        }
    }
}
