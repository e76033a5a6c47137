//! `quorate tree import` and `export`: trees are copied, from a ZooKeeper and as JSON lines.

use crate::native::rustclient::{block_on, client};
use crate::native::tree::{cluster, node};
use crate::support::cluster::until;
use crate::support::run::{Said, command, feed};
use quorate_client::v1::{Acl, NewNode, NodeKind};
use serde_json::{Value, json};
use std::time::Duration;

/// Who may read, write and set the access list, and make and remove no children.
fn no_children() -> Vec<Acl> {
    vec![Acl { permissions: 19, scheme: "world".into(), id: "anyone".into() }]
}

fn run(host: &str, keyspace: &str, args: &[&str], input: &[u8]) -> Said {
    let target = ["--grpc", host, "--keyspace", keyspace, "--timeout", "60s"];
    let all: Vec<&str> = ["tree"].iter().chain(args).chain(&target).copied().collect();
    feed(&mut command(&all), input)
}

#[test]
fn a_tree_is_copied_over_zookeepers_wire_and_as_json_lines() {
    let (cluster, hosts) = cluster();
    let (host, from) = (hosts[0].as_str(), cluster.zookeeper(2));
    let session = block_on(async {
        let admin = client(&hosts).admin();
        let durability = [("durability", "memory")];
        admin.create("copy", "coordination", &durability).await.expect("it is made");
        let tree = client(&hosts).tree("config");
        for (path, data) in [("/app", "one"), ("/app/a", "x"), ("/app/a/b", "y"), ("/other", "")] {
            tree.create(node(path, data)).await.expect("it is made");
        }
        tree.set("/app/a", &b"\xff\0"[..], None).await.expect("it is set");
        tree.set_acl("/app/a", no_children(), None).await.expect("it is set");
        let session = tree.open(Duration::from_secs(30)).await.expect("it is opened");
        let ends = NewNode { kind: NodeKind::Ephemeral.into(), ..node("/app/here", "") };
        session.tree().create(ends).await.expect("it is made");
        // It ends by itself, after everything that is looked at here.
        session.id()
    });
    assert_ne!(session, 0);
    until("the copy is served", || run(host, "copy", &["ls", "/"], b"").code == 0);
    let import = ["import", "--from", &from, "/app", "--to", "/moved/app"];
    let said = run(host, "copy", &[&import[..], &["--json"]].concat(), b"");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.json(), json!({ "nodes": 3, "bytes": 6, "ephemeral": 1 }));
    assert!(said.err.contains("imported 3 nodes, 6 bytes; 1 ephemeral nodes skipped"), "{said:?}");
    let listed = run(host, "copy", &["ls", "-R", "/moved"], b"").out;
    assert_eq!(listed, "/moved\n/moved/app\n/moved/app/a\n/moved/app/a/b\n");
    block_on(async {
        let copy = client(&hosts).tree("copy");
        let read = copy.get("/moved/app/a").await.expect("it is there");
        assert_eq!(read.data.as_deref(), Some(&b"\xff\0"[..]));
        assert_eq!(copy.acl("/moved/app/a").await, Ok(no_children()));
        let tree = client(&hosts).tree("config");
        tree.set("/app/a/b", "z", None).await.expect("it is set");
    });
    let again = run(host, "copy", &import, b"");
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.err.contains("Exists: /moved/app: ") && again.err.contains("--overwrite"));
    let over = run(host, "copy", &[&import[..], &["--overwrite"]].concat(), b"");
    assert_eq!(over.code, 0, "{over:?}");
    assert_eq!(run(host, "copy", &["get", "/moved/app/a/b"], b"").out, "z");

    let said = run(host, "copy", &["export", "/moved/app"], b"");
    assert_eq!(said.code, 0, "{said:?}");
    let lines: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert_eq!((lines.len(), &lines[0]["data"]), (3, &json!("one")));
    assert_eq!(
        (&lines[1]["data_hex"], &lines[1]["acl"][0]["permissions"]),
        (&json!("ff00"), &json!(19))
    );
    let lines = ["import", "--from", "-", "/moved/app", "--to", "/third"];
    assert_eq!(run(host, "copy", &lines, said.out.as_bytes()).code, 0);
    let listed = run(host, "copy", &["ls", "-R", "/third"], b"").out;
    assert_eq!(listed, "/third\n/third/a\n/third/a/b\n");
    let acl = block_on(async { client(&hosts).tree("copy").acl("/third/a").await });
    assert_eq!(acl, Ok(no_children()));

    what_cannot_be_imported_is_named(host, &from);
    parents_are_made_as_far_as_the_client_may(&hosts, &from);
}

fn what_cannot_be_imported_is_named(host: &str, from: &str) {
    for (args, input, code, word) in [
        (&["import", "--from", from, "/none"][..], "", 3, "NoNode: /none: "),
        (&["import", "--from", "-"], "{}", 1, "line 1: "),
        (&["import", "--from", from, "/zookeeper"], "", 2, "/zookeeper is no path"),
        (&["import", "--from", "127.0.0.1:1"], "", 5, "127.0.0.1:1: "),
    ] {
        let said = run(host, "copy", args, input.as_bytes());
        assert_eq!(said.code, code, "{args:?}: {said:?}");
        assert!(said.err.contains(word), "{args:?}: {said:?}");
    }
}

/// Nodes above the copy that are there need no permission; those that are made do.
fn parents_are_made_as_far_as_the_client_may(hosts: &[String], from: &str) {
    let host = hosts[0].as_str();
    block_on(async {
        let copy = client(hosts).tree("copy");
        for path in ["/closed", "/closed/in"] {
            copy.create(node(path, "")).await.expect("it is made");
        }
        copy.set_acl("/closed", no_children(), None).await.expect("it is set");
    });
    let import = |to: &str| run(host, "copy", &["import", "--from", from, "/app", "--to", to], b"");
    let said = import("/closed/in/new/app");
    assert_eq!(said.code, 0, "{said:?}");
    let listed = || run(host, "copy", &["ls", "-R", "/closed"], b"").out;
    let copied = listed();
    assert!(copied.contains("\n/closed/in/new/app/a/b\n"), "{copied}");
    let said = import("/closed/out/app");
    assert_eq!(said.code, 1, "{said:?}");
    let why = "NoAuth: /closed/out: ";
    assert!(said.err.contains(why) && said.err.contains("--auth shows who you are"), "{said:?}");
    assert_eq!(listed(), copied, "nothing was made");
}
