//! Three of ZooKeeper's servers, each with a disk and memory of its own.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::config::Stop;
use crate::error::BenchError;
use crate::rounds::child::Server;

/// How many servers there are.
const MEMBERS: u16 = 3;
/// What ZooKeeper's own scripts give a server.
const HEAP: &str = "-Xmx1000m";
/// How long a server may take to answer a word.
const WORD: Duration = Duration::from_millis(500);

/// How to start an ensemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnsembleConfig {
    /// Where the jars of ZooKeeper and of what it needs are.
    pub jars: PathBuf,
    /// Its first port; it takes three times three.
    pub port_base: u16,
}

/// An ensemble that runs; dropping it stops it.
#[derive(Debug)]
pub(crate) struct Ensemble {
    servers: Vec<Server>,
    _directory: TempDir,
}

impl Ensemble {
    /// Starts the servers and waits until each follows or leads.
    pub fn start(config: &EnsembleConfig, stop: &Stop) -> Result<Ensemble, BenchError> {
        if !has_jars(&config.jars) {
            let text = format!("{} has no zookeeper-VERSION.jar", config.jars.display());
            return Err(BenchError::Settings(text));
        }
        let directory = tempfile::Builder::new().prefix("quorate-bench-").tempdir();
        let directory = directory.map_err(BenchError::system("make a directory"))?;
        let classes = format!("{}/*", config.jars.display());
        let mut servers = Vec::new();
        for number in 1..=MEMBERS {
            let own = directory.path().join(number.to_string());
            prepare(&own, number, config.port_base).map_err(BenchError::system("write files"))?;
            let file = own.join("zoo.cfg");
            let arguments = [
                HEAP,
                "-Dzookeeper.admin.enableServer=false",
                "-cp",
                &classes,
                "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                &file.to_string_lossy(),
            ];
            servers.push(Server::member("java", &arguments, client_address(number, config))?);
        }
        let mut ensemble = Ensemble { servers, _directory: directory };
        for server in &mut ensemble.servers {
            let address = server.endpoints[0];
            server.wait(stop, || is_serving(&srvr(address)))?;
        }
        Ok(ensemble)
    }

    /// Where clients connect.
    pub fn endpoints(&self) -> Vec<SocketAddr> {
        self.servers.iter().flat_map(|server| server.endpoints.clone()).collect()
    }

    /// The servers' processes.
    pub fn pids(&self) -> Vec<u32> {
        self.servers.iter().flat_map(|server| server.pids.clone()).collect()
    }
}

fn has_jars(directory: &Path) -> bool {
    let names = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|name| {
        let version = name.strip_prefix("zookeeper-").unwrap_or_default();
        version.starts_with(|digit: char| digit.is_ascii_digit()) && name.ends_with(".jar")
    })
}

fn client_address(number: u16, config: &EnsembleConfig) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], config.port_base + number))
}

/// Writes what one server reads when it starts.
fn prepare(directory: &Path, number: u16, port_base: u16) -> std::io::Result<()> {
    fs::create_dir_all(directory.join("data"))?;
    fs::write(directory.join("data/myid"), number.to_string())?;
    fs::write(directory.join("zoo.cfg"), settings(directory, number, port_base))
}

/// ZooKeeper's own defaults, written out where they say what an acknowledgement means.
fn settings(directory: &Path, number: u16, port_base: u16) -> String {
    let member = |n: u16| {
        let [peers, elections] = [port_base + 10 + n, port_base + 20 + n];
        format!("server.{n}=127.0.0.1:{peers}:{elections}\n")
    };
    let members: String = (1..=MEMBERS).map(member).collect();
    format!(
        "tickTime=2000\ninitLimit=10\nsyncLimit=5\nforceSync=yes\nmaxClientCnxns=0\n\
         clientPortAddress=127.0.0.1\nclientPort={}\ndataDir={}/data\n{members}",
        port_base + number,
        directory.display()
    )
}

/// What a server says of itself; nothing if it does not answer.
pub(crate) fn srvr(address: SocketAddr) -> String {
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&address, WORD)?;
        stream.set_read_timeout(Some(WORD))?;
        stream.write_all(b"srvr")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok::<String, std::io::Error>(text)
    };
    ask().unwrap_or_default()
}

fn mode(said: &str) -> Option<&str> {
    said.lines().find_map(|line| line.strip_prefix("Mode: "))
}

/// Whether a server that says this takes clients.
pub(crate) fn is_serving(said: &str) -> bool {
    matches!(mode(said), Some("leader" | "follower"))
}

/// Whether a server that says this leads the others.
pub(crate) fn is_leading(said: &str) -> bool {
    mode(said) == Some("leader")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_what_they_are() {
        let said = |mode: &str| format!("Zookeeper version: 3.9.5\nMode: {mode}\nNode count: 5\n");
        assert!(is_serving(&said("leader")) && is_leading(&said("leader")));
        assert!(is_serving(&said("follower")) && !is_leading(&said("follower")));
        for other in ["", "This ZooKeeper instance is not currently serving requests"] {
            assert!(!is_serving(other) && !is_leading(other));
        }
        assert!(!is_serving(&said("standalone")), "it has no others to ask");
    }

    #[test]
    fn members_know_each_other() {
        let text = settings(Path::new("/d"), 2, 7700);
        for line in ["clientPort=7702", "forceSync=yes", "dataDir=/d/data"] {
            assert!(text.lines().any(|one| one == line), "{text}");
        }
        assert!(text.ends_with(
            "server.1=127.0.0.1:7711:7721\nserver.2=127.0.0.1:7712:7722\n\
             server.3=127.0.0.1:7713:7723\n"
        ));
    }

    #[test]
    fn a_directory_without_jars_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let config = EnsembleConfig { jars: directory.path().to_owned(), port_base: 1 };
        let error = Ensemble::start(&config, &Stop::default()).unwrap_err();
        assert!(error.to_string().contains("zookeeper-VERSION.jar"), "{error}");
        fs::write(directory.path().join("zookeeper-jute-3.9.5.jar"), "").unwrap();
        assert!(!has_jars(directory.path()));
        fs::write(directory.path().join("zookeeper-3.9.5.jar"), "").unwrap();
        assert!(has_jars(directory.path()));
    }
}
