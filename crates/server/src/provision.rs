//! The birth of a cluster: ids, the secret, keyspaces with their first views, one directory a host.

use crate::config::load::FILE_NAME;
use crate::config::settings::{CLUSTER_PORT, Config};
use crate::config::values::{Size, check_address};
use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
use quorate_kernel::limits::GROUP_MEMBERS_MAX;
use quorate_kernel::storage::Durability;
use quorate_node::catalog::{Catalog, CatalogError, Engine, Keyspace};
use quorate_store::{DirectoryError, HostRecord, Identity, KeyspaceRecord, Secret};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thiserror::Error;

/// Lanes below this one are kept for what every node has, such as the membership.
const LANE_FIRST: u32 = 16;

/// Why a cluster was not written.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// One group holds all hosts until there is a ring. Nothing was written.
    #[error("{count} hosts were asked for; a cluster has 1 to {GROUP_MEMBERS_MAX} for now")]
    HostCount {
        /// How many were asked for.
        count: usize,
    },
    /// An address cannot be a host's. Nothing was written.
    #[error("{address}: {message}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        message: String,
    },
    /// A keyspace breaks a rule. Nothing was written.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A directory could not be created; those of hosts with higher numbers were.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The operating system gave no random bytes. Nothing was written.
    #[error("the operating system gives no random bytes: {0}")]
    Random(String),
    /// A file could not be read or written; some of the directories may have been created.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

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

/// Where the doors of one host are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doors {
    /// Where other hosts find it: an address or a name, with a port.
    pub cluster: String,
    /// Where the cluster door listens.
    pub cluster_bind: SocketAddr,
    /// Where the HTTP door listens.
    pub http: SocketAddr,
    /// Where the RESP door listens.
    pub resp: SocketAddr,
}

impl Doors {
    /// The doors of a host whose cluster door is found at this address; HTTP and RESP take the next
    /// two ports. A name says nothing of the machine's own addresses: its doors listen on all.
    ///
    /// # Errors
    /// The address is none, or has no port that leaves room for the others.
    pub fn at(address: &str) -> Result<Doors, ProvisionError> {
        let refused =
            |message: String| ProvisionError::Address { address: address.to_owned(), message };
        let has_port = address.parse::<SocketAddr>().is_ok()
            || (address.parse::<IpAddr>().is_err() && address.contains(':'));
        let full = match address.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, CLUSTER_PORT).to_string(),
            Err(_) if has_port => address.to_owned(),
            Err(_) => format!("{address}:{CLUSTER_PORT}"),
        };
        check_address(&full).map_err(refused)?;
        let (name, port) = full.rsplit_once(':').expect("a checked address has a port");
        let port: u16 = port.parse().expect("a checked address has a valid port");
        if !(1..=u16::MAX - 2).contains(&port) {
            return Err(refused(String::from("its port and the two after it must be usable")));
        }
        let ip = match full.parse::<SocketAddr>() {
            Ok(socket) => socket.ip(),
            Err(_) if name == "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Err(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        let door = |offset| SocketAddr::new(ip, port + offset);
        Ok(Doors { cluster: full.clone(), cluster_bind: door(0), http: door(1), resp: door(2) })
    }

    /// The doors of host `number` on this machine: port base + 10 · number + 1, 2 and 3.
    ///
    /// # Errors
    /// The ports would be too high.
    pub fn on_this_machine(port_base: u16, number: u32) -> Result<Doors, ProvisionError> {
        let port = u32::from(port_base) + 10 * number + 1;
        Doors::at(&format!("127.0.0.1:{port}"))
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

/// Writes a host's addresses into its own configuration file, and keeps whatever else is set there.
/// `addresses` are those of all hosts, where they are no longer those of the identity.
///
/// # Errors
/// [`ProvisionError::Io`]; the file is as it was.
pub fn write_addresses(
    directory: &Path,
    doors: &Doors,
    addresses: Option<&[String]>,
) -> Result<(), ProvisionError> {
    let path = directory.join(FILE_NAME);
    let failed = |source| ProvisionError::Io { path: path.clone(), source };
    let mut table: toml::Table = match std::fs::read_to_string(&path) {
        Ok(text) => text.parse().map_err(|error: toml::de::Error| {
            failed(std::io::Error::new(std::io::ErrorKind::InvalidData, error.to_string()))
        })?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => toml::Table::new(),
        Err(error) => return Err(failed(error)),
    };
    let mut set = |section: &str, name: &str, value: toml::Value| {
        let section = table.entry(section).or_insert_with(|| toml::Table::new().into());
        if let toml::Value::Table(section) = section {
            section.insert(name.to_owned(), value);
        }
    };
    set("cluster", "bind", doors.cluster_bind.to_string().into());
    set("http", "bind", doors.http.to_string().into());
    set("resp", "bind", doors.resp.to_string().into());
    if let Some(addresses) = addresses {
        set("cluster", "addresses", addresses.to_vec().into());
    }
    const HEAD: &str =
        "# The settings of this host; `quorate config reference` explains them all.\n\n";
    let fresh = path.with_extension("toml.new");
    std::fs::write(&fresh, format!("{HEAD}{table}"))
        .and_then(|()| std::fs::rename(&fresh, &path))
        .map_err(failed)
}

/// The doors a host's configuration gives it.
#[must_use]
pub fn doors_of(config: &Config, address: &str) -> Doors {
    Doors {
        cluster: address.to_owned(),
        cluster_bind: config.cluster.bind,
        http: config.http.bind,
        resp: config.resp.bind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Loaded, Sources};

    fn plan(hosts: u32) -> Plan {
        let doors = |number| Doors::on_this_machine(7400, number).expect("free ports");
        Plan {
            hosts: (1..=hosts).map(doors).collect(),
            keyspaces: vec![KeyspaceSpec::standard()],
            durability: Durability::Sync,
        }
    }

    fn config_of(directory: &Path) -> Config {
        let data = (directory.display()).to_string();
        let flags = vec![("--data", String::from("node.data"), data)];
        Loaded::read(&Sources { flags, ..Sources::default() }).expect("a good file").config
    }

    #[test]
    fn directories_agree_on_the_cluster_and_differ_in_who_they_are() {
        let output = tempfile::tempdir().expect("a temporary directory");
        let first = write(&plan(3), output.path()).expect("an empty place");
        assert_eq!(first.host, 1);
        for number in 1..=3 {
            let directory = host_directory(output.path(), number);
            let identity = quorate_store::identity_of(&directory).expect("it was written");
            assert_eq!(identity.host, number);
            assert_eq!(identity.node, first.hosts[number as usize - 1].node);
            assert_eq!((identity.cluster, &identity.hosts), (first.cluster, &first.hosts));
            assert_eq!(identity.keyspaces, first.keyspaces);
            assert_eq!(identity.keyspaces[0].members.len(), 3);
            let config = config_of(&directory);
            assert_eq!(config.resp.bind.port(), 7403 + 10 * number as u16);
            assert_eq!(config.http.bind.port(), 7402 + 10 * number as u16);
            assert_eq!(
                identity.hosts[number as usize - 1].address,
                config.cluster.bind.to_string()
            );
        }
        let again = write(&plan(3), output.path());
        assert!(matches!(again, Err(ProvisionError::Directory(_))), "nothing is written over");
    }

    #[test]
    fn addresses_can_be_changed_and_other_settings_stay() {
        let output = tempfile::tempdir().expect("a temporary directory");
        write(&plan(1), output.path()).expect("an empty place");
        let directory = host_directory(output.path(), 1);
        let file = directory.join(FILE_NAME);
        let mut text = std::fs::read_to_string(&file).expect("it was written");
        text.push_str("\n[store]\ncache = \"3MiB\"\n");
        std::fs::write(&file, text).expect("it can be changed");
        let moved = Doors::on_this_machine(9000, 1).expect("free ports");
        let addresses = [moved.cluster.clone()];
        write_addresses(&directory, &moved, Some(&addresses)).expect("it can be changed");
        let config = config_of(&directory);
        assert_eq!(config.store.cache, Size(3 << 20));
        assert_eq!(config.cluster.addresses.0, addresses);
        assert_eq!(doors_of(&config, &moved.cluster), moved);
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
    fn doors_follow_the_address_of_the_cluster_door() {
        let doors = |address| Doors::at(address).expect("an address");
        assert_eq!(doors("10.0.0.1").cluster, "10.0.0.1:7411");
        assert_eq!(doors("10.0.0.1").resp.to_string(), "10.0.0.1:7413");
        assert_eq!(doors("[::1]:9001").http.to_string(), "[::1]:9002");
        assert_eq!(doors("::1").cluster, "[::1]:7411");
        assert_eq!(doors("kv-1.example").cluster, "kv-1.example:7411");
        assert_eq!(doors("kv-1.example:9001").cluster_bind.to_string(), "0.0.0.0:9001");
        assert_eq!(doors("localhost:9001").resp.to_string(), "127.0.0.1:9003");
        for bad in ["", "a:b", "127.0.0.1:0", "127.0.0.1:65534", "x:70000"] {
            assert!(Doors::at(bad).is_err(), "{bad}");
        }
        assert!(Doors::on_this_machine(65_530, 1).is_err());
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
