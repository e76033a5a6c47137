//! Where a host listens, and the file in its directory that says so.

use super::error::ProvisionError;
use crate::config::load::FILE_NAME;
use crate::config::settings::{CLUSTER_PORT, Config, GRPC_PORT, HTTP_PORT};
use crate::config::values::{check_address, is_localhost};
use quorate_doors::DOORS;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The name of the door that is for hosts, who prove that they know the cluster's secret.
const CLUSTER_DOOR: &str = "cluster";

/// Where the doors of one host are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doors {
    /// Where other hosts find it: an address or a name, with a port.
    pub cluster: String,
    /// Where the cluster door listens.
    pub cluster_bind: SocketAddr,
    /// Where the HTTP door listens.
    pub http: SocketAddr,
    /// Where the doors of clients on the core thread listen, in the order of [`DOORS`].
    pub clients: Vec<SocketAddr>,
    /// Where the gRPC door listens.
    pub grpc: SocketAddr,
}

impl Doors {
    /// Whether other machines can reach one of the doors of clients, so that the host starts with
    /// `--insecure` only.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        let doors = self.all();
        let mut of_clients = doors.iter().filter(|(door, _)| *door != CLUSTER_DOOR);
        of_clients.any(|(_, address)| !address.ip().is_loopback())
    }

    /// The doors by their names, and where each listens.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, SocketAddr)> {
        let mut all = vec![(CLUSTER_DOOR, self.cluster_bind), ("http", self.http)];
        all.extend(self.named_clients());
        all.push(("grpc", self.grpc));
        all
    }

    /// The first of these doors that cannot be opened beside one of the other host's, as both are
    /// at one address, and that one. Whether two names are of one machine is not known here.
    #[must_use]
    pub fn meets(&self, other: &Doors) -> Option<(&'static str, &'static str, SocketAddr)> {
        let is_one_name = || host_of(&self.cluster).eq_ignore_ascii_case(host_of(&other.cluster));
        let others = other.all();
        self.all().into_iter().find_map(|(door, address)| {
            let is_met = |it: &&(&str, SocketAddr)| {
                it.1 == address && (!address.ip().is_unspecified() || is_one_name())
            };
            others.iter().find(is_met).map(|(met, _)| (door, *met, address))
        })
    }

    /// The doors of clients on the core thread by their names.
    pub fn named_clients(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> {
        DOORS.iter().map(|door| door.name).zip(self.clients.iter().copied())
    }

    /// The doors of a host whose cluster door is found at this address; the others take the ports
    /// behind it, in the order of their usual ports. A name says nothing of the machine's own
    /// addresses: its doors listen on all.
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
        let last = DOORS.iter().map(|door| door.port).fold(GRPC_PORT, u16::max) - CLUSTER_PORT;
        if !(1..=u16::MAX - last).contains(&port) {
            return Err(refused(format!("its port and the {last} after it must be usable")));
        }
        let ip = match full.parse::<SocketAddr>() {
            Ok(socket) => socket.ip(),
            Err(_) if is_localhost(name) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Err(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        let door = |usual: u16| SocketAddr::new(ip, port + (usual - CLUSTER_PORT));
        Ok(Doors {
            cluster: full.clone(),
            cluster_bind: door(CLUSTER_PORT),
            http: door(HTTP_PORT),
            clients: DOORS.iter().map(|each| door(each.port)).collect(),
            grpc: door(GRPC_PORT),
        })
    }

    /// The doors of host `number` on this machine: port base + 10 · number + 1 to 5.
    ///
    /// # Errors
    /// The ports would be too high.
    pub fn on_this_machine(port_base: u16, number: u32) -> Result<Doors, ProvisionError> {
        let port = u32::from(port_base) + 10 * number + 1;
        Doors::at(&format!("127.0.0.1:{port}"))
    }
}

/// What stands before the port of an address.
fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// Writes a host's addresses into its own configuration file, and keeps whatever else is set there;
/// its directory is made if it is not there.
/// `addresses` are those of all hosts, where they are no longer those of the identity.
///
/// # Errors
/// [`ProvisionError::Io`]; the file is as it was, unless the disk failed.
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
    for (door, address) in doors.all() {
        set(door, "bind", address.to_string().into());
    }
    if let Some(addresses) = addresses {
        set("cluster", "addresses", addresses.to_vec().into());
    }
    const HEAD: &str =
        "# The settings of this host; `quorate config reference` explains them all.\n\n";
    let fresh = path.with_extension("toml.new");
    let write = || {
        quorate_store::create_directory(directory)?;
        // It lies in a data directory, of which nothing is open to others.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&fresh)?;
        file.write_all(format!("{HEAD}{table}").as_bytes())?;
        // Without the file the host would take the usual addresses, and say nothing.
        file.sync_all()?;
        std::fs::rename(&fresh, &path)?;
        std::fs::File::open(directory)?.sync_all()
    };
    write().map_err(failed)
}

/// The doors a host's configuration gives it.
#[must_use]
pub fn doors_of(config: &Config, address: &str) -> Doors {
    Doors {
        cluster: address.to_owned(),
        cluster_bind: config.cluster.bind,
        http: config.http.bind,
        clients: config.doors.iter().map(|door| door.bind).collect(),
        grpc: config.grpc.bind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::values::Size;
    use crate::config::{Loaded, Sources};

    fn config_of(directory: &Path) -> Config {
        let data = (directory.display()).to_string();
        let flags = vec![("--data", String::from("node.data"), data)];
        Loaded::read(&Sources { flags, ..Sources::default() }).expect("a good file").config
    }

    #[test]
    fn addresses_can_be_changed_and_other_settings_stay() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let first = Doors::on_this_machine(7400, 1).expect("ports in range");
        write_addresses(place.path(), &first, None).expect("it can be written");
        assert_eq!(doors_of(&config_of(place.path()), &first.cluster), first);
        let file = place.path().join(FILE_NAME);
        let mut text = std::fs::read_to_string(&file).expect("it was written");
        text.push_str("\n[store]\ncache = \"3MiB\"\n");
        std::fs::write(&file, text).expect("it can be changed");
        let moved = Doors::on_this_machine(9000, 1).expect("ports in range");
        let addresses = [moved.cluster.clone()];
        write_addresses(place.path(), &moved, Some(&addresses)).expect("it can be changed");
        let config = config_of(place.path());
        assert_eq!(config.store.cache, Size(3 << 20));
        assert_eq!(config.cluster.addresses.0, addresses);
        assert_eq!(doors_of(&config, &moved.cluster), moved);
    }

    #[test]
    fn consent_is_needed_for_doors_of_clients_alone() {
        let own = Doors::at("10.0.0.1").expect("an address");
        assert!(own.is_exposed() && !Doors::at("127.0.0.1").expect("an address").is_exposed());
        let inside =
            Doors { cluster_bind: own.cluster_bind, ..doors_of(&Config::default(), "x:1") };
        assert!(!inside.is_exposed(), "hosts prove who they are");
        assert!(Doors { grpc: own.grpc, ..inside }.is_exposed());
    }

    #[test]
    fn doors_follow_the_address_of_the_cluster_door() {
        let doors = |address| Doors::at(address).expect("an address");
        assert_eq!(doors("10.0.0.1").cluster, "10.0.0.1:7411");
        assert_eq!(doors("10.0.0.1").clients[0].to_string(), "10.0.0.1:7413");
        assert_eq!(doors("10.0.0.1").grpc.to_string(), "10.0.0.1:7414");
        assert_eq!(doors("[::1]:9001").http.to_string(), "[::1]:9002");
        assert_eq!(doors("::1").cluster, "[::1]:7411");
        assert_eq!(doors("kv-1.example").cluster, "kv-1.example:7411");
        assert_eq!(doors("kv-1.example:9001").cluster_bind.to_string(), "0.0.0.0:9001");
        assert_eq!(doors("localhost:9001").clients[0].to_string(), "127.0.0.1:9003");
        for bad in ["", "a:b", "127.0.0.1:0", "127.0.0.1:65534", "x:70000"] {
            assert!(Doors::at(bad).is_err(), "{bad}");
        }
        for bad in ["10.0.0.1,10.0.0.2", "10.0.0.256", "my host", "0.0.0.0", "::", "a/b"] {
            assert!(Doors::at(bad).is_err(), "{bad}");
        }
        assert!(Doors::on_this_machine(65_530, 1).is_err());
    }
}
