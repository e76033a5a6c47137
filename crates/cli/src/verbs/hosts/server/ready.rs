//! The line that a host prints once it serves.

use quorate_doors::resp;
use quorate_gateway::admin::health;
use quorate_host::metrics::Shared;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A ready host as one line: where it is, and how to harm it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyLine {
    /// Its number.
    pub host: u32,
    /// Its process.
    pub pid: u32,
    /// Its data directory.
    pub data: PathBuf,
    /// Its HTTP door.
    pub http: SocketAddr,
    /// Its door for other hosts.
    pub cluster: SocketAddr,
    /// Its doors of clients on the core thread, by their names.
    #[serde(flatten)]
    pub clients: BTreeMap<String, SocketAddr>,
    /// Its gRPC door.
    pub grpc: SocketAddr,
}

impl ReadyLine {
    /// Its door for Redis clients.
    ///
    /// # Panics
    /// The line is not of this build, which has that door.
    #[must_use]
    pub fn resp(&self) -> SocketAddr {
        *self.clients.get(resp::DOOR.name).expect("every host of this build has the door")
    }
}

/// Prints the ready line as soon as clients will be served, then waits for ever.
pub(super) async fn announce(
    shared: &Shared,
    data: &Path,
    found: &OnceLock<(SocketAddr, SocketAddr)>,
    is_json: bool,
) {
    while !health::is_ready(shared) {
        shared.changed().await;
    }
    if let (Some(doors), Some((http, grpc))) = (shared.doors(), found.get().copied()) {
        let line = ReadyLine {
            host: shared.host,
            pid: std::process::id(),
            data: data.to_owned(),
            http,
            cluster: doors.cluster,
            clients: doors.clients.iter().map(|it| (it.name.to_owned(), it.address)).collect(),
            grpc,
        };
        tracing::info!(event = "host_ready", resp = %line.resp(), http = %line.http);
        // Nobody may be listening, and the host serves all the same.
        let _ = writeln!(stdout(), "{}", text_of(&line, is_json));
    }
    std::future::pending::<()>().await;
}

fn text_of(line: &ReadyLine, is_json: bool) -> String {
    if is_json {
        return serde_json::to_string(line).expect("a ready line has only texts and numbers");
    }
    let ReadyLine { host, pid, clients, http, grpc, cluster, .. } = line;
    let clients: Vec<String> = clients.iter().map(|(name, at)| format!("{name} {at}")).collect();
    let clients = clients.join(", ");
    format!(
        "host {host} is ready: process {pid}, {clients}, http {http}, grpc {grpc}, cluster \
         {cluster}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_reads_back() {
        let address = |text: &str| text.parse().expect("an address");
        let line = ReadyLine {
            host: 2,
            pid: 7,
            data: PathBuf::from("/d/host-2"),
            http: "127.0.0.1:7422".parse().expect("an address"),
            cluster: "127.0.0.1:7421".parse().expect("an address"),
            clients: BTreeMap::from([(String::from("resp"), address("127.0.0.1:7423"))]),
            grpc: "127.0.0.1:7424".parse().expect("an address"),
        };
        let json = text_of(&line, true);
        assert_eq!(
            json,
            "{\"host\":2,\"pid\":7,\"data\":\"/d/host-2\",\"http\":\"127.0.0.1:7422\",\
             \"cluster\":\"127.0.0.1:7421\",\"resp\":\"127.0.0.1:7423\",\
             \"grpc\":\"127.0.0.1:7424\"}"
        );
        assert_eq!(serde_json::from_str::<ReadyLine>(&json).expect("its own form"), line);
        assert!(text_of(&line, false).contains("resp 127.0.0.1:7423"));
    }
}
