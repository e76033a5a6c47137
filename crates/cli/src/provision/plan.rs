//! What a cluster is to be, drawn and written as directories.

use super::doors::{Doors, write_addresses};
use super::error::ProvisionError;
use super::keyspace;
use quorate_host::proof::secret;
use quorate_host::ring::founding;
use quorate_kernel::ids::{ClusterId, NodeId};
use quorate_kernel::keyspace::{CatalogRefusal, NewKeyspace};
use quorate_kernel::limits::{FOUNDING_HOSTS_MAX, HOST_TOKENS_MAX};
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::Durability;
use quorate_protocols::overlay::tokens::places;
use quorate_store::{HostRecord, Identity, Secret};
use std::path::{Path, PathBuf};

/// A cluster to be born.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The doors of each host, in the order of their numbers.
    pub hosts: Vec<Doors>,
    /// The failure zone of each host; none at all if there are no zones.
    pub zones: Vec<String>,
    /// How many places on the ring each host has.
    pub tokens: usize,
    /// What the cluster is born with; an operator may add others.
    pub keyspaces: Vec<NewKeyspace>,
    /// The durability of keyspaces that do not say.
    pub durability: Durability,
}

/// The directory of a host below that of its cluster.
#[must_use]
pub fn host_directory(output: &Path, number: u32) -> PathBuf {
    output.join(format!("host-{number}"))
}

/// Writes the directories `host-1` and so on beside the cluster's secret, and answers the first
/// host's identity. The first host comes last: where its directory is whole, all are.
///
/// # Errors
/// See [`ProvisionError`].
pub fn write(plan: &Plan, output: &Path) -> Result<Identity, ProvisionError> {
    let mut identity = draw(plan)?;
    // Before anything is written: a second cluster must not take the place of the first one's
    // secret.
    for record in &identity.hosts {
        quorate_store::check_empty(&host_directory(output, record.host))?;
    }
    let begun = secret::Begun::begin(output, &identity.secret)?;
    for (record, doors) in identity.hosts.clone().iter().zip(&plan.hosts).rev() {
        (identity.host, identity.node) = (record.host, record.node);
        let directory = host_directory(output, record.host);
        write_addresses(&directory, doors, None)?;
        quorate_store::create(&directory, &identity)?;
    }
    begun.end()?;
    Ok(identity)
}

/// Draws a cluster's ids and lays out its ring and keyspaces.
fn draw(plan: &Plan) -> Result<Identity, ProvisionError> {
    check(plan)?;
    let count = plan.hosts.len();
    let tokens = places::founding(count, plan.tokens);
    let hosts = plan.hosts.iter().zip(tokens).enumerate().map(|(index, (doors, tokens))| {
        Ok(HostRecord {
            host: u32::try_from(index + 1).expect("founding hosts are few"),
            node: NodeId(u64::from_be_bytes(random()?)),
            address: doors.cluster.clone(),
            zone: plan.zones.get(index).cloned().unwrap_or_default(),
            tokens,
        })
    });
    let hosts = hosts.collect::<Result<Vec<_>, ProvisionError>>()?;
    Ok(Identity {
        cluster: ClusterId(u128::from_be_bytes(random()?)),
        node: hosts[0].node,
        host: 1,
        is_founder: true,
        secret: Secret(random()?),
        context_key: None,
        keyspaces: keyspaces(plan, &Ring::new(0, founding::ring_hosts(&hosts)))?,
        hosts,
    })
}

fn check(plan: &Plan) -> Result<(), ProvisionError> {
    let (count, zones) = (plan.hosts.len(), plan.zones.len());
    if !(1..=FOUNDING_HOSTS_MAX).contains(&count) {
        return Err(ProvisionError::HostCount { count });
    }
    if !(1..=HOST_TOKENS_MAX).contains(&plan.tokens) {
        return Err(ProvisionError::TokenCount { count: plan.tokens });
    }
    if ![0, count].contains(&zones) {
        return Err(ProvisionError::ZoneCount { zones, hosts: count });
    }
    let pairs = plan.hosts.iter().enumerate().flat_map(|(index, doors)| {
        plan.hosts[..index].iter().enumerate().map(move |(other, met)| (doors, other + 1, met))
    });
    for (doors, number, other) in pairs {
        if let Some((door, met, at)) = doors.meets(other) {
            let count = doors.all().len();
            let message = format!(
                "its {door} door would have the same address as the {met} door of host {number}, \
                 {at}; each host takes {count} ports, its own and those after it"
            );
            return Err(ProvisionError::Address { address: doors.cluster.clone(), message });
        }
    }
    Ok(())
}

fn keyspaces(plan: &Plan, ring: &Ring) -> Result<Vec<NewKeyspace>, CatalogRefusal> {
    let mut all: Vec<NewKeyspace> = Vec::new();
    for asked in &plan.keyspaces {
        if all.iter().any(|other| other.name == asked.name) {
            return Err(CatalogRefusal::Exists { name: asked.name.clone() });
        }
        all.push(keyspace::founded(asked, plan.durability, ring)?);
    }
    Ok(all)
}

/// Bytes from the operating system's generator: ids must differ between machines and runs.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], ProvisionError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| ProvisionError::Random(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The directory of a host in a place that has nothing else.
    pub(crate) fn made(place: &Path) -> PathBuf {
        let data = host_directory(place, 1);
        let identity = Identity {
            cluster: ClusterId(1),
            node: NodeId(2),
            host: 1,
            is_founder: true,
            secret: Secret([7; 32]),
            context_key: None,
            hosts: Vec::new(),
            keyspaces: Vec::new(),
        };
        quorate_store::create(&data, &identity).expect("created");
        data
    }

    /// So many hosts on this machine.
    pub(crate) fn plan(hosts: u32) -> Plan {
        let doors = |number| Doors::on_this_machine(7400, number).expect("free ports");
        Plan {
            hosts: (1..=hosts).map(doors).collect(),
            zones: Vec::new(),
            tokens: 1,
            keyspaces: vec![keyspace::standard()],
            durability: Durability::Sync,
        }
    }

    #[test]
    fn a_keyspace_with_partitions_is_born_with_all_its_settings_on_hosts_enough() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let mut plan = plan(3);
        plan.keyspaces = keyspace::of_each_engine(3);
        let identity = write(&plan, &place.path().join("three")).expect("an empty place");
        let record = &identity.keyspaces[1];
        assert_eq!((record.name.as_str(), record.engine.as_str()), ("causal", "causal"));
        let setting = |name: &str| record.settings[name].clone();
        assert_eq!((setting("partitions"), setting("replicas")), ("66".into(), "3".into()));
        founding::check(&identity).expect("it was checked when written");
        plan.hosts.truncate(2);
        let few = write(&plan, &place.path().join("two"));
        assert!(few.is_err_and(|error| error.to_string().contains("3 hosts that take part")));
        plan.hosts.truncate(1);
        plan.keyspaces = keyspace::of_each_engine(1);
        write(&plan, &place.path().join("one")).expect("one replica");
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
            assert!(identity.is_founder && identity.hosts[index].tokens.len() == 1);
            founding::check(&identity).expect("it was checked when written");
            assert_eq!(identity.hosts[index].address, doors.cluster);
        }
        let secret = secret::read(&output.path().join(secret::FILE_NAME));
        assert_eq!(secret.ok(), Some(vec![first.secret]));
        let again = write(&plan, output.path());
        assert!(matches!(again, Err(ProvisionError::Directory(_))), "nothing is written over");
        let kept = secret::read(&output.path().join(secret::FILE_NAME));
        assert_eq!(kept.ok(), Some(vec![first.secret]), "nor is the secret");
        // Each directory is on its machine by now.
        (1..=3).for_each(|number| {
            let moved = output.path().join(format!("moved-{number}"));
            std::fs::rename(host_directory(output.path(), number), moved).expect("moved");
        });
        let again = write(&plan, output.path()).expect_err("refused");
        assert!(again.to_string().contains("it is there already"), "{again}");
        let kept = secret::read(&output.path().join(secret::FILE_NAME));
        assert_eq!(kept.ok(), Some(vec![first.secret]), "hosts that join need it");
        assert!(!host_directory(output.path(), 1).exists(), "nothing is written");
    }

    #[test]
    fn plans_that_cannot_be_are_refused() {
        let output = tempfile::tempdir().expect("a temporary directory");
        let refused = |plan: &Plan| write(plan, output.path()).expect_err("refused");
        assert!(matches!(refused(&plan(0)), ProvisionError::HostCount { count: 0 }));
        assert!(matches!(refused(&plan(65)), ProvisionError::HostCount { count: 65 }));
        let nowhere = Plan { tokens: 0, ..plan(1) };
        assert!(matches!(refused(&nowhere), ProvisionError::TokenCount { count: 0 }));
        let zoned = Plan { zones: vec![String::from("a")], ..plan(2) };
        assert!(matches!(refused(&zoned), ProvisionError::ZoneCount { zones: 1, hosts: 2 }));
        let mut twice = plan(2);
        twice.hosts[1] = twice.hosts[0].clone();
        assert!(matches!(refused(&twice), ProvisionError::Address { .. }));
        let at = |addresses: [&str; 2]| Plan {
            hosts: addresses.map(|address| Doors::at(address).expect("an address")).to_vec(),
            ..plan(2)
        };
        for met in [["127.0.0.1:7411", "localhost:7411"], ["kv-1:7411", "KV-1:7415"]] {
            assert!(matches!(refused(&at(met)), ProvisionError::Address { .. }), "{met:?}");
        }
        let next = refused(&at(["127.0.0.1:7411", "127.0.0.1:7412"])).to_string();
        assert!(next.contains("its cluster door") && next.contains("the http door of host 1"));
        for apart in [["kv-1", "kv-2"], ["10.0.0.1", "10.0.0.2"], ["kv-1", "kv-1:7500"]] {
            check(&at(apart)).expect("each has its own ports");
        }
        let mut doubled = plan(1);
        doubled.keyspaces.push(keyspace::standard());
        assert!(matches!(refused(&doubled), ProvisionError::Catalog(_)));
        let left = std::fs::read_dir(output.path()).expect("it is there").count();
        assert_eq!(left, 0, "nothing was written");
    }
}
