//! `quorate tree` as whoever knows `zkCli.sh` uses it.

use crate::native::tree::cluster;
use crate::support::cluster::until;
use crate::support::run::{Said, command, feed, quorate};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

/// A command that goes on until it is told to end.
struct Running(Child, Lines<BufReader<ChildStdout>>);

impl Running {
    fn start(args: &[&str]) -> Running {
        let mut command = command(args);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let out = child.stdout.take().expect("a pipe was asked for");
        Running(child, BufReader::new(out).lines())
    }

    fn line(&mut self) -> String {
        self.1.next().expect("it goes on").expect("the output is text")
    }

    /// Ends it as Ctrl-C does; its exit code.
    fn interrupt(mut self) -> Option<i32> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::INT).expect("it runs");
        self.0.wait().expect("it ends").code()
    }
}

/// Runs it against a host, until a quorum answers.
fn tree(host: &str, args: &[&str]) -> Said {
    let all: Vec<&str> = ["tree"].iter().chain(args).copied().chain(["--grpc", host]).collect();
    let mut said = quorate(&all);
    until("a quorum answers", || {
        if said.code == 5 {
            said = quorate(&all);
        }
        said.code != 5
    });
    said
}

/// What it printed, which is all that it said.
fn told(host: &str, args: &[&str]) -> String {
    let said = tree(host, args);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}: {said:?}");
    said.out
}

#[test]
fn nodes_are_worked_on_with_the_flags_of_zkcli() {
    let (_cluster, hosts) = cluster();
    let host = hosts[0].as_str();
    assert_eq!(told(host, &["create", "/a", "one"]), "/a\n");
    assert_eq!(told(host, &["create", "-s", "/a/n-"]), "/a/n-0000000000\n");
    assert_eq!(told(host, &["create", "-c", "/a/box"]), "/a/box\n");
    assert_eq!(told(host, &["create", "-t", "1h", "/a/box/short", "x"]), "/a/box/short\n");
    assert_eq!(told(host, &["ls", "/a"]), "box\nn-0000000000\n");
    assert_eq!(told(host, &["ls", "-R", "/a"]), "/a\n/a/box\n/a/box/short\n/a/n-0000000000\n");
    assert_eq!(told(host, &["get", "/a"]), "one");
    assert_eq!(told(host, &["set", "--version", "0", "/a", "two"]), "");
    let node = tree(host, &["get", "/a", "--json"]).json();
    assert_eq!((&node["path"], &node["data"]), (&json!("/a"), &json!("two")));
    assert_eq!((&node["stat"]["version"], &node["stat"]["children"]), (&json!(1), &json!(2)));
    assert!(told(host, &["stat", "/a"]).contains("dataVersion = 1\n"));
    assert!(told(host, &["get", "-s", "/a"]).starts_with("two\ncZxid = 0x"));
    let both = ["--grpc", host, "--keyspace", "config"];
    let set = ["tree", "set", "/a", "-"].iter().chain(&both).copied().collect::<Vec<_>>();
    assert_eq!(feed(&mut command(&set), b"from a pipe").code, 0);
    assert_eq!(told(host, &["get", "/a"]), "from a pipe");
    let acl = ["create", "--acl", "world:anyone:r", "/read-only", "x"];
    assert_eq!(told(host, &acl), "/read-only\n");
    let own = ["create", "--auth", "digest:ann:secret", "--acl", "auth::cdrwa", "/own", "mine"];
    assert_eq!(told(host, &own), "/own\n");
    assert_eq!(told(host, &["get", "--auth", "digest:ann:secret", "/own"]), "mine");
    for (args, code, word) in [
        (&["get", "/none"][..], 3, "NoNode: /none: "),
        (&["stat", "/none"], 3, "NoNode: /none: "),
        (&["create", "/a"], 1, "Exists: /a: "),
        (&["create", "/none/a"], 3, "NoNode: /none/a: "),
        (&["set", "-v", "7", "/a", "x"], 1, "BadVersion: /a: "),
        (&["delete", "-v", "7", "/a/n-0000000000"], 1, "BadVersion: /a/n-0000000000: "),
        (&["delete", "/a"], 1, "NotEmpty: /a: "),
        (&["set", "/read-only", "y"], 1, "NoAuth: /read-only: "),
        (&["get", "/own"], 1, "NoAuth: /own: "),
        (&["get", "a"], 1, "BadArguments: a: "),
        (&["ls", "/", "--keyspace", "none"], 3, ""),
        (&["ls", "/", "--keyspace", "default"], 1, ""),
        (&["create", "-e", "-c", "/x"], 2, ""),
    ] {
        let said = tree(host, args);
        assert_eq!(said.code, code, "{args:?}: {said:?}");
        let error = said.err.strip_prefix("error: ").unwrap_or(&said.err);
        assert!(error.starts_with(word) && said.out.is_empty(), "{args:?}: {said:?}");
    }
    assert_eq!(tree(host, &["delete", "-r", "/a", "--json"]).json()["deleted"], 4);
    assert_eq!(told(host, &["ls", "/"]), "own\nread-only\nzookeeper\n");
    let nobody = quorate(&["tree", "ls", "/", "--grpc", "127.0.0.1:1", "--timeout", "300ms"]);
    assert_eq!((nobody.code, nobody.out.as_str()), (5, ""), "{nobody:?}");
}

#[test]
fn an_ephemeral_node_is_there_as_long_as_its_command() {
    let (_cluster, hosts) = cluster();
    let host = hosts[0].as_str();
    let mut holds = Running::start(&["tree", "create", "-e", "-s", "/n-", "me", "--grpc", host]);
    assert_eq!(holds.line(), "/n-0000000000");
    let stat = tree(&hosts[1], &["stat", "/n-0000000000", "--json"]).json();
    assert_ne!(stat["stat"]["ephemeral_owner"], "0000000000000000");
    assert_eq!(holds.interrupt(), Some(0));
    assert_eq!(tree(&hosts[1], &["stat", "/n-0000000000"]).code, 3);
}

#[test]
fn what_becomes_of_a_node_is_printed_until_ctrl_c() {
    let (_cluster, hosts) = cluster();
    let host = hosts[0].as_str();
    let mut all = Running::start(&["tree", "watch", "-R", "/a", "--grpc", host]);
    assert_eq!(all.line(), "watching /a");
    told(&hosts[1], &["create", "/a", "one"]);
    let mut read = Running::start(&["tree", "get", "-w", "/a", "--json", "--grpc", host]);
    let node: Value = serde_json::from_str(&read.line()).expect("it is JSON");
    assert_eq!(node["data"], "one");
    told(&hosts[1], &["set", "/a", "two"]);
    told(&hosts[1], &["delete", "/a"]);
    for line in ["created /a", "changed /a", "deleted /a"] {
        assert_eq!(all.line(), line);
    }
    for event in ["changed", "deleted"] {
        let told: Value = serde_json::from_str(&read.line()).expect("it is JSON");
        assert_eq!((&told["event"], &told["path"]), (&json!(event), &json!("/a")));
        assert!(told["zxid"].is_u64());
    }
    assert_eq!((all.interrupt(), read.interrupt()), (Some(0), Some(0)));
}
