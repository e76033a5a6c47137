//! What is printed when the cluster is ready.

use super::prepare::{Prepared, durability};
use crate::output::columns;
use crate::verbs::hosts::server::ReadyLine;
use quorate_doors::DOORS;
use serde_json::json;
use std::path::Path;

/// One line for scripts.
#[must_use]
pub fn json(prepared: &Prepared, lines: &[ReadyLine]) -> String {
    let cluster = prepared.identity.cluster.to_string();
    format!("{}\n", json!({ "cluster": cluster, "hosts": lines }))
}

/// A table of addresses and three things to try.
#[must_use]
pub fn text(prepared: &Prepared, lines: &[ReadyLine]) -> String {
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            let ReadyLine { host, pid, clients, http, grpc, cluster, data } = line;
            let mut row = vec![host.to_string(), pid.to_string()];
            row.extend(DOORS.iter().map(|door| clients[door.name].to_string()));
            row.extend([http, grpc, cluster].map(|door| door.to_string()));
            row.push(data.display().to_string());
            row
        })
        .collect();
    let names: Vec<String> = DOORS.iter().map(|door| door.name.to_uppercase()).collect();
    let mut head = vec!["HOST", "PROCESS"];
    head.extend(names.iter().map(String::as_str));
    head.extend(["HTTP", "GRPC", "CLUSTER", "DATA"]);
    let table = columns("  ", &head, &rows);
    let [first, second, last] = [&lines[0], &lines[1 % lines.len()], &lines[lines.len() - 1]];
    let port = |line: &ReadyLine| line.resp().port();
    let names: Vec<&str> =
        prepared.identity.keyspaces.iter().map(|keyspace| keyspace.name.as_str()).collect();
    format!(
        "\nCluster {cluster} is ready ({made}): {count} hosts, keyspace {names}, \
         durability {level}.\n\n{table}\n\
         Three things to try:\n\n  \
         1. Write on one host, read on another:\n       \
            redis-cli -p {p1} set greeting hello\n       \
            redis-cli -p {p2} get greeting\n  \
         2. Kill a host; the others go on. Then start it again:\n       \
            kill -9 {pid}\n       \
            redis-cli -p {p1} get greeting\n       \
            {again}\n  \
         3. See how a host is, and what it counts:\n       \
            {executable} status --http {http}\n       \
            curl -s http://{http}/metrics\n\n\
         Logs are in {logs}. Ctrl-C stops the cluster; its data stays.\n",
        cluster = prepared.identity.cluster,
        made = if prepared.is_new { "new" } else { "found again" },
        count = lines.len(),
        names = names.join(", "),
        level = durability(&prepared.identity),
        p1 = port(first),
        p2 = port(second),
        pid = last.pid,
        again = start_again(&last.data),
        executable = executable(),
        http = first.http,
        logs = prepared.data.join("host-*.log").display(),
    )
}

/// The command that starts a host again.
#[must_use]
pub fn start_again(directory: &Path) -> String {
    format!("{} server --data {}", executable(), directory.display())
}

/// This program, as the user called it.
fn executable() -> String {
    std::env::args().next().unwrap_or_else(|| String::from("quorate"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::{Doors, Plan, keyspace, write};
    use quorate_kernel::storage::Durability;

    fn prepared(place: &Path) -> Prepared {
        let hosts = (1..=3).map(|number| Doors::on_this_machine(7400, number));
        let plan = Plan {
            hosts: hosts.collect::<Result<_, _>>().expect("ports in range"),
            zones: Vec::new(),
            tokens: 1,
            keyspaces: vec![keyspace::standard()],
            durability: Durability::Memory,
        };
        let identity = write(&plan, place).expect("an empty place");
        Prepared {
            identity,
            numbers: vec![1, 2, 3],
            data: place.to_owned(),
            doors: plan.hosts,
            is_new: true,
        }
    }

    fn lines(prepared: &Prepared) -> Vec<ReadyLine> {
        let line = |(host, doors): (u32, &Doors)| ReadyLine {
            host,
            pid: 100 + host,
            data: prepared.data.join(format!("host-{host}")),
            http: doors.http,
            cluster: doors.cluster_bind,
            clients: doors.named_clients().map(|(name, at)| (name.to_owned(), at)).collect(),
            grpc: doors.grpc,
        };
        (1..).zip(&prepared.doors).map(line).collect()
    }

    #[test]
    fn scripts_get_one_line_with_every_door() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let prepared = prepared(place.path());
        let text = json(&prepared, &lines(&prepared));
        assert_eq!(text.lines().count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).expect("one JSON object");
        assert_eq!(value["cluster"], prepared.identity.cluster.to_string());
        let second = &value["hosts"][1];
        assert_eq!(second["host"], 2);
        assert_eq!(second["pid"], 102);
        assert_eq!(second["resp"], "127.0.0.1:7423");
        assert_eq!(second["http"], "127.0.0.1:7422");
        assert_eq!(second["grpc"], "127.0.0.1:7424");
        assert_eq!(second["cluster"], "127.0.0.1:7421");
        assert!(second["data"].as_str().is_some_and(|data| data.ends_with("host-2")));
    }

    #[test]
    fn people_get_a_table_and_commands_that_fit_the_ports() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let prepared = prepared(place.path());
        let text = text(&prepared, &lines(&prepared));
        for part in [
            "3 hosts, keyspace default, durability memory",
            "redis-cli -p 7413 set greeting hello",
            "redis-cli -p 7423 get greeting",
            "kill -9 103",
            "status --http 127.0.0.1:7412",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(text.contains(&format!("server --data {}/host-3", place.path().display())));
    }
}
