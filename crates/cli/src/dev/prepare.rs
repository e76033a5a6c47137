//! The directories of a cluster on this machine, made or found again, and its ports.

use super::{Args, HOSTS, HOSTS_MAX, PORT_BASE};
use crate::config::{Config, Environment, Loaded, Sources};
use crate::exit::{Code, Failure};
use crate::provision::{self, Doors, Plan, host_directory, keyspace};
use quorate_kernel::storage::Durability;
use quorate_store::Identity;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// A cluster that can be started.
#[derive(Debug)]
pub struct Prepared {
    /// The cluster, as its first host's directory has it.
    pub identity: Identity,
    /// The numbers of the hosts, those that joined later included.
    pub numbers: Vec<u32>,
    /// Where the hosts' directories are.
    pub data: PathBuf,
    /// The doors of each host, in the order of their numbers.
    pub doors: Vec<Doors>,
    /// Whether the directories were made just now.
    pub is_new: bool,
}

/// Makes the directories, or finds those of an earlier run.
///
/// # Errors
/// What is there is not what was asked for, cannot be used, or a port is taken.
pub fn prepare(args: &Args) -> Result<Prepared, Failure> {
    let data = std::path::absolute(&args.data)?;
    let prepared = if has_hosts(&data) { find(args, data)? } else { make(args, data)? };
    check_ports(&prepared.doors)?;
    Ok(prepared)
}

fn has_hosts(data: &Path) -> bool {
    (1..=HOSTS_MAX).any(|number| host_directory(data, number).exists())
}

fn doors(port_base: u16, count: u32) -> Result<Vec<Doors>, Failure> {
    let doors = (1..=count).map(|number| Doors::on_this_machine(port_base, number));
    Ok(doors.collect::<Result<_, _>>()?)
}

fn make(args: &Args, data: PathBuf) -> Result<Prepared, Failure> {
    let hosts = doors(args.port_base.unwrap_or(PORT_BASE), args.hosts.unwrap_or(HOSTS))?;
    check_ports(&hosts)?;
    let keyspaces = match args.keyspaces.as_slice() {
        [] => keyspace::of_each_engine(args.hosts.unwrap_or(HOSTS)),
        asked => asked.to_vec(),
    };
    let plan = Plan {
        hosts,
        zones: Vec::new(),
        tokens: args.tokens.unwrap_or(1),
        keyspaces,
        durability: args.durability.unwrap_or_default(),
    };
    let identity = provision::write(&plan, &data)?;
    let numbers = identity.hosts.iter().map(|record| record.host).collect();
    Ok(Prepared { identity, numbers, data, doors: plan.hosts, is_new: true })
}

fn find(args: &Args, data: PathBuf) -> Result<Prepared, Failure> {
    let identity = quorate_store::identity_of(&host_directory(&data, 1))?;
    let count = identity.hosts.len();
    let durability = identity.keyspaces.first().map(|_| durability(&identity));
    refuse_if_differs(&data, "--hosts", args.hosts.map(|hosts| hosts as usize), Some(count))?;
    refuse_if_differs(&data, "--durability", args.durability, durability)?;
    if !args.keyspaces.is_empty() {
        let text = format!(
            "the cluster in {} was made before, so --keyspace has no use; leave it out and make \
             keyspaces with `quorate keyspace create`, or choose another --data",
            data.display()
        );
        return Err(Failure::new(Code::Usage, text));
    }
    for record in &identity.hosts {
        let directory = host_directory(&data, record.host);
        quorate_store::directory::check_unused(&directory)?;
        let found = quorate_store::identity_of(&directory)?;
        if (found.cluster, found.host) != (identity.cluster, record.host) {
            return Err(Failure::failed(format!(
                "{} belongs to host {} of cluster {}, not to host {} of cluster {}; put the \
                 directories back as they were, or choose another --data",
                directory.display(),
                found.host,
                found.cluster,
                record.host,
                identity.cluster
            )));
        }
    }
    let joined = joined(&data, &identity)?;
    let mut doors = match args.port_base {
        Some(port_base) if joined.is_empty() => readdress(&data, &identity, port_base)?,
        _ => found_doors(&data, &identity)?,
    };
    if args.port_base.is_some() && !joined.is_empty() {
        let text = "the ports of a cluster that hosts have joined cannot be moved; leave \
                    --port-base out";
        return Err(Failure::new(Code::Usage, text));
    }
    let founders = identity.hosts.iter().map(|record| record.host);
    let numbers = founders.chain(joined.iter().map(|(number, _)| *number)).collect();
    doors.extend(joined.into_iter().map(|(_, doors)| doors));
    Ok(Prepared { identity, numbers, data, doors, is_new: false })
}

/// The hosts that joined the cluster after it was made, with their doors.
fn joined(data: &Path, identity: &Identity) -> Result<Vec<(u32, Doors)>, Failure> {
    let mut joined = Vec::new();
    let is_founder = |number: &u32| identity.hosts.iter().any(|record| record.host == *number);
    for number in (1..=HOSTS_MAX).filter(|number| !is_founder(number)) {
        let directory = host_directory(data, number);
        let Ok(found) = quorate_store::identity_of(&directory) else { continue };
        if found.cluster != identity.cluster {
            continue;
        }
        quorate_store::directory::check_unused(&directory)?;
        let own = found.hosts.iter().find(|record| record.node == found.node);
        let address = own.map_or("", |record| record.address.as_str());
        joined.push((number, doors_in(&directory, &config_of(&directory)?, address)?));
    }
    Ok(joined)
}

fn config_of(directory: &Path) -> Result<Config, Failure> {
    let path = directory.display().to_string();
    let flags = vec![("--data", String::from("node.data"), path)];
    let environment = Environment::of_process();
    Ok(Loaded::read(&Sources { flags, environment, ..Sources::default() })?.config)
}

fn refuse_if_differs<T: PartialEq + ToString>(
    data: &Path,
    flag: &str,
    asked: Option<T>,
    found: Option<T>,
) -> Result<(), Failure> {
    match (asked, found) {
        (Some(asked), Some(found)) if asked != found => Err(Failure::new(
            Code::Usage,
            format!(
                "the cluster in {} was made with {flag} {}, which cannot be changed to {}; leave \
                 the flag out, or choose another --data",
                data.display(),
                found.to_string(),
                asked.to_string()
            ),
        )),
        _ => Ok(()),
    }
}

/// Moves a cluster to other ports.
fn readdress(data: &Path, identity: &Identity, port_base: u16) -> Result<Vec<Doors>, Failure> {
    let moved = doors(port_base, identity.hosts.len() as u32)?;
    if found_doors(data, identity)? == moved {
        return Ok(moved);
    }
    check_ports(&moved)?;
    let addresses: Vec<String> = moved.iter().map(|doors| doors.cluster.clone()).collect();
    for (record, doors) in identity.hosts.iter().zip(&moved) {
        let directory = host_directory(data, record.host);
        provision::write_addresses(&directory, doors, Some(&addresses))?;
    }
    Ok(moved)
}

/// The doors as the hosts' own files have them; those of the identity where a file is gone.
fn found_doors(data: &Path, identity: &Identity) -> Result<Vec<Doors>, Failure> {
    let mut doors = Vec::new();
    for (index, record) in identity.hosts.iter().enumerate() {
        let directory = host_directory(data, record.host);
        if !directory.join(crate::config::load::FILE_NAME).exists() {
            provision::write_addresses(&directory, &Doors::at(&record.address)?, None)?;
        }
        let config = config_of(&directory)?;
        let address = config.cluster.addresses.0.get(index).unwrap_or(&record.address).clone();
        doors.push(doors_in(&directory, &config, &address)?);
    }
    Ok(doors)
}

/// The doors that a host's file gives it. One from before there was such a door names none, and all
/// hosts would take the same: it is written into the file.
fn doors_in(directory: &Path, config: &Config, address: &str) -> Result<Doors, Failure> {
    let mut doors = provision::doors_of(config, address);
    let (own, usual) = (Doors::at(address)?, provision::doors_of(&Config::default(), address));
    let before = doors.clone();
    if doors.grpc == usual.grpc {
        doors.grpc = own.grpc;
    }
    for (number, door) in doors.clients.iter_mut().enumerate() {
        if *door == usual.clients[number] {
            *door = own.clients[number];
        }
    }
    if doors != before {
        provision::write_addresses(directory, &doors, None)?;
    }
    Ok(doors)
}

/// Sees that every port is free now, so that the usual mistake is told before anything starts. A
/// host that loses its port between now and then says so itself.
fn check_ports(doors: &[Doors]) -> Result<(), Failure> {
    for (host, doors) in (1..).zip(doors) {
        for (door, address) in doors.all() {
            let Err(error) = TcpListener::bind(address) else { continue };
            let port = address.port();
            let text = match error.kind() {
                ErrorKind::AddrInUse => format!(
                    "port {port} is in use, and the {door} door of host {host} needs it; stop what \
                     uses it, or choose other ports with --port-base"
                ),
                _ => format!("the {door} door of host {host} cannot listen on {address}: {error}"),
            };
            return Err(Failure::failed(text));
        }
    }
    Ok(())
}

/// The durability of the cluster's first keyspace.
#[must_use]
pub fn durability(identity: &Identity) -> Durability {
    let first = identity.keyspaces.first().and_then(|first| first.settings.get("durability"));
    first.and_then(|level| level.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Format, Output};

    /// How far apart the bases of two clusters of a test are.
    const APART: u16 = 100;

    /// Ports of a test alone, below those that the system gives out by itself.
    struct Ports {
        base: u16,
        /// On the first port of each block, on which no host listens: a test that runs beside
        /// finds the block taken.
        _guards: [TcpListener; 2],
    }

    /// The bases of two clusters, a block of ports apart; tests of two runs never meet.
    fn ports() -> Ports {
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        let blocks = 240 / 2;
        let start = quorate_kernel::rng::mix(u64::from(std::process::id())) % blocks;
        for turn in 0..blocks {
            let base = 8_000 + (start + turn) as u16 % blocks as u16 * 2 * APART;
            let Ok(first) = TcpListener::bind(("127.0.0.1", base)) else { continue };
            let Ok(second) = TcpListener::bind(("127.0.0.1", base + APART)) else { continue };
            let mut others = (base + 1..base + 2 * APART).filter(|port| *port != base + APART);
            if others.all(is_free) {
                return Ports { base, _guards: [first, second] };
            }
        }
        panic!("no block of {} ports is free from 8000 on", 2 * APART);
    }

    fn args(data: &Path, port_base: u16) -> Args {
        Args {
            command: None,
            data: data.to_owned(),
            hosts: None,
            port_base: Some(port_base),
            durability: None,
            keyspaces: Vec::new(),
            tokens: None,
            set: Vec::new(),
            output: Output { format: Format::Text },
        }
    }

    #[test]
    fn a_cluster_is_made_once_and_found_again() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let ports = ports();
        let first = args(place.path(), ports.base);
        let made = prepare(&first).expect("free ports");
        assert!(made.is_new);
        assert_eq!(made.doors.len(), 3);
        assert_eq!(made.doors[1].clients[0].port(), ports.base + 23);
        let found = prepare(&Args { port_base: None, ..first }).expect("free ports");
        assert!(!found.is_new);
        assert_eq!(found.identity, made.identity);
        assert_eq!(found.doors, made.doors, "the ports of the first run are kept");
        let moved = prepare(&args(place.path(), ports.base + APART)).expect("free ports");
        assert_eq!(moved.doors[2].http.port(), ports.base + APART + 32);
        assert_eq!(moved.identity, made.identity);
    }

    #[test]
    fn hosts_from_before_the_grpc_door_get_one_each() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let ports = ports();
        let made = prepare(&args(place.path(), ports.base)).expect("free ports");
        for number in 1..=3 {
            let file = host_directory(place.path(), number).join(crate::config::load::FILE_NAME);
            let text = std::fs::read_to_string(&file).expect("it was written");
            let mut table: toml::Table = text.parse().expect("it is TOML");
            assert!(table.remove("grpc").is_some());
            std::fs::write(&file, table.to_string()).expect("it can be changed");
        }
        let found = prepare(&Args { port_base: None, ..args(place.path(), ports.base) });
        assert_eq!(found.expect("free ports").doors, made.doors);
        let config = config_of(&host_directory(place.path(), 2)).expect("it is good");
        assert_eq!(config.grpc.bind.port(), ports.base + 24);
    }

    #[test]
    fn what_cannot_be_changed_is_refused() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let ports = ports();
        let args = |data| args(data, ports.base);
        prepare(&args(place.path())).expect("free ports");
        let refused = |args: &Args| prepare(args).expect_err("refused");
        let five = Args { hosts: Some(5), ..args(place.path()) };
        let failure = refused(&five);
        assert_eq!(failure.code, Code::Usage);
        assert!(failure.message.contains("--hosts 3, which cannot be changed to 5"), "{failure}");
        let memory = Some(Durability::Memory);
        let failure = refused(&Args { durability: memory, ..args(place.path()) });
        assert!(failure.message.contains("--durability sync"), "{failure}");
        let keyspaces = vec![keyspace::parse("carts=causal").expect("a good one")];
        let failure = refused(&Args { keyspaces, ..args(place.path()) });
        assert!(failure.message.contains("quorate keyspace create"), "{failure}");
        let same = Args { hosts: Some(3), ..args(place.path()) };
        assert!(prepare(&same).is_ok());
    }

    #[test]
    fn a_new_cluster_has_the_keyspaces_it_was_asked_for() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let ports = ports();
        let specs = ["default=causal,siblings=newest", "carts=causal,replicas=1"];
        let keyspaces = specs.map(|spec| keyspace::parse(spec).expect("a good one")).to_vec();
        let made =
            prepare(&Args { keyspaces, ..args(place.path(), ports.base) }).expect("free ports");
        let names: Vec<_> = made.identity.keyspaces.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["default", "carts"]);
    }

    #[test]
    fn swapped_directories_are_refused() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let ports = ports();
        prepare(&args(place.path(), ports.base)).expect("free ports");
        let [one, two] = [2, 3].map(|number| host_directory(place.path(), number));
        let aside = place.path().join("aside");
        std::fs::rename(&one, &aside).expect("renamed");
        std::fs::rename(&two, &one).expect("renamed");
        std::fs::rename(&aside, &two).expect("renamed");
        let failure = prepare(&args(place.path(), ports.base)).expect_err("refused");
        assert!(failure.message.contains("belongs to host 3"), "{failure}");
        std::fs::remove_dir_all(host_directory(place.path(), 1)).expect("removed");
        assert!(prepare(&args(place.path(), ports.base)).is_err(), "a lost host is not made anew");
    }

    #[test]
    fn a_taken_port_is_named_with_its_door() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let ports = ports();
        let port = ports.base + 22;
        let _taken = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
        let failure = prepare(&args(place.path(), ports.base)).expect_err("refused");
        assert!(failure.message.contains(&format!("port {port} is in use")), "{failure}");
        assert!(failure.message.contains("http door of host 2"), "{failure}");
        assert!(!has_hosts(place.path()), "nothing was made");
    }
}
