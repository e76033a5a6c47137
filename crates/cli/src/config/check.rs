//! What a host refuses of settings that are each well by themselves. `config check` says the same.

use super::load::ConfigError;
use super::settings::Config;
use quorate_store::Identity;
use std::net::SocketAddr;

impl Config {
    /// Refuses doors of clients that other machines can reach, unless that was asked for. The
    /// cluster door may listen anywhere: who connects there proves first that it knows the
    /// cluster's secret, and what leaves the machine is encrypted.
    ///
    /// # Errors
    /// [`ConfigError::Exposed`] names the first such door.
    pub fn check_exposure(&self) -> Result<(), ConfigError> {
        for (door, address) in self.client_doors() {
            if !address.ip().is_loopback() && !self.node.insecure {
                return Err(ConfigError::Exposed { door, address });
            }
        }
        Ok(())
    }

    /// Refuses doors of which one takes the other's place.
    ///
    /// # Errors
    /// [`ConfigError::Meeting`] names the first two.
    pub fn check_doors(&self) -> Result<(), ConfigError> {
        let mut doors = vec![("cluster", self.cluster.bind)];
        doors.extend(self.client_doors());
        for (index, (door, address)) in doors.iter().copied().enumerate() {
            let met = doors[..index].iter().find(|(_, other)| do_meet(address, *other));
            if let Some((other, _)) = met.copied() {
                return Err(ConfigError::Meeting { door, other, address });
            }
        }
        Ok(())
    }

    /// Refuses addresses that are not those of the hosts that the directory knows.
    ///
    /// # Errors
    /// [`ConfigError::Count`].
    pub fn check_addresses(&self, identity: &Identity) -> Result<(), ConfigError> {
        let (given, hosts) = (self.cluster.addresses.0.len(), identity.hosts.len());
        match given == 0 || given == hosts {
            true => Ok(()),
            false => Err(ConfigError::Count { given, hosts }),
        }
    }
}

/// Whether the system lets only one listen. Whether all addresses of IPv6 are those of IPv4 too
/// depends on the machine.
fn do_meet(one: SocketAddr, other: SocketAddr) -> bool {
    let is_all = one.ip().is_unspecified() || other.ip().is_unspecified();
    let is_one_ip = one.ip() == other.ip() || (is_all && one.is_ipv4() == other.is_ipv4());
    one.port() != 0 && one.port() == other.port() && is_one_ip
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Loaded, Sources};
    use crate::provision::plan::tests::plan;
    use crate::provision::write;

    fn config(set: &[(&str, &str)]) -> Config {
        let flag = |(path, text): &(&str, &str)| ("--set", (*path).to_owned(), (*text).to_owned());
        let flags = set.iter().map(flag).collect();
        let loaded = Loaded::read(&Sources { flags, ..Sources::default() });
        loaded.expect("a good configuration").config
    }

    #[test]
    fn doors_that_others_can_reach_need_consent() {
        assert!(config(&[]).check_exposure().is_ok());
        let bind = ("resp.bind", "0.0.0.0:7413");
        let open = config(&[bind]).check_exposure().expect_err("exposed").to_string();
        assert!(open.contains("the resp door would listen on 0.0.0.0:7413"), "{open}");
        assert!(config(&[bind, ("node.insecure", "true")]).check_exposure().is_ok());
        for door in ["http", "grpc"] {
            let open = config(&[(&format!("{door}.bind"), "10.0.0.4:7412")]).check_exposure();
            let open = open.expect_err("exposed").to_string();
            assert!(open.contains(&format!("the {door} door would listen on")), "{open}");
        }
    }

    #[test]
    fn the_cluster_door_needs_no_consent() {
        let config = config(&[("cluster.bind", "10.0.0.4:7411")]);
        assert_eq!(config.cluster.bind.to_string(), "10.0.0.4:7411");
        config.check_exposure().expect("hosts prove who they are");
    }

    #[test]
    fn each_door_has_a_place_of_its_own() {
        config(&[]).check_doors().expect("the usual ports differ");
        for other in ["127.0.0.1:7411", "0.0.0.0:7411"] {
            let met = config(&[("http.bind", other)]).check_doors().expect_err("taken").to_string();
            assert!(met.contains("the http door and the cluster door"), "{met}");
        }
        for apart in ["127.0.0.2:7411", "[::1]:7411", "[::]:7411", "127.0.0.1:0"] {
            config(&[("http.bind", apart)]).check_doors().expect(apart);
        }
        let free = [("http.bind", "127.0.0.1:0"), ("grpc.bind", "127.0.0.1:0")];
        config(&free).check_doors().expect("each gets another one");
    }

    #[test]
    fn each_host_of_the_directory_has_an_address() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let identity = write(&plan(2), place.path()).expect("an empty place");
        let addresses = |list: &str| config(&[("cluster.addresses", list)]);
        addresses("").check_addresses(&identity).expect("those of the directory");
        addresses("a:1,b:1").check_addresses(&identity).expect("two are right");
        let wrong = addresses("a:1").check_addresses(&identity).expect_err("one is missing");
        assert_eq!(wrong.to_string(), "cluster.addresses has 1 addresses for 2 hosts");
    }
}
