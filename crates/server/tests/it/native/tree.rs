//! Trees over the native API: nodes, sessions that outlive their host, and what is followed.

use crate::native::rustclient::{Proxy, block_on, client};
use crate::support::cluster::{Cluster, until};
use bytes::Bytes;
use quorate_client::v1::node_item::Action;
use quorate_client::v1::{Kind, NewNode, NodeData, NodeFailure, NodeItem, NodeKind, NodeVersion};
use quorate_client::{Client, ClientError, Tree, TreeSession};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a session's client may be silent: longer than a busy machine makes it.
const SILENCE: Duration = Duration::from_secs(30);

/// A cluster with a tree that all of its hosts know.
pub fn cluster() -> (Cluster, Vec<String>) {
    cluster_with(&[])
}

/// The same with further settings.
fn cluster_with(more: &[(&str, &str)]) -> (Cluster, Vec<String>) {
    let cluster = Cluster::start("memory");
    let hosts: Vec<String> = (1..=3).map(|host| cluster.grpc(host)).collect();
    block_on(async {
        let admin = client(&hosts).admin();
        let usual = [("durability", "memory"), ("timeout_min", "2000")];
        let settings = [&usual[..], more].concat();
        admin.create("config", "coordination", &settings).await.expect("it is made");
    });
    for host in &hosts {
        until("every host serves the tree", || {
            let one = [host.clone()];
            block_on(async { client(&one).tree("config").exists("/").await.is_ok() })
        });
    }
    (cluster, hosts)
}

pub fn node(path: &str, data: &str) -> NewNode {
    let (path, data) = (String::from(path), Bytes::copy_from_slice(data.as_bytes()));
    NewNode { path, data, ..NewNode::default() }
}

fn ephemeral(path: &str) -> NewNode {
    NewNode { kind: NodeKind::Ephemeral.into(), ..node(path, "") }
}

/// What of the tree did not allow it.
fn failure<T: std::fmt::Debug>(ended: Result<T, ClientError>) -> NodeFailure {
    let error = ended.expect_err("it is refused");
    error.node_failure().unwrap_or_else(|| panic!("{error:?}"))
}

async fn open(client: &Client) -> TreeSession {
    client.tree("config").open(SILENCE).await.expect("it is opened")
}

fn item(action: Action) -> NodeItem {
    NodeItem { action: Some(action) }
}

#[test]
fn nodes_are_made_read_set_listed_and_removed() {
    let (_cluster, hosts) = cluster();
    block_on(async {
        let tree = client(&hosts).tree("config");
        let (path, stat) = tree.create(node("/a", "one")).await.expect("it is made");
        assert_eq!((path.as_str(), stat.version, stat.data_length), ("/a", 0, 3));
        assert_eq!(failure(tree.create(node("/a", "")).await), NodeFailure::Exists);
        assert_eq!(failure(tree.create(node("/b/c", "")).await), NodeFailure::NoNode);
        let numbered = NewNode { sequential: true, ..node("/a/n-", "") };
        for expected in ["/a/n-0000000000", "/a/n-0000000001"] {
            assert_eq!(tree.create(numbered.clone()).await.expect("it is made").0, expected);
        }
        assert_eq!(
            tree.children("/a").await,
            Ok(["n-0000000000", "n-0000000001"].map(String::from).into())
        );
        // Without a name it is the first keyspace that has a tree.
        let read = client(&hosts).tree("").get("/a").await.expect("it is there");
        assert_eq!((read.data.as_deref(), read.stat.children), (Some(&b"one"[..]), 2));
        assert_eq!(failure(tree.set("/a", "two", Some(7)).await), NodeFailure::BadVersion);
        assert_eq!(tree.set("/a", "two", Some(0)).await.expect("it is set").version, 1);
        assert_eq!(failure(tree.delete("/a", None).await), NodeFailure::NotEmpty);
        assert_eq!(tree.exists("/none").await, Ok(None));
        assert_eq!(failure(tree.get("/none").await), NodeFailure::NoNode);
        for bad in ["", "a", "/a/", "/a//b", "/a/./b"] {
            assert_eq!(failure(tree.get(bad).await), NodeFailure::BadArguments, "{bad}");
            assert_eq!(failure(tree.delete(bad, None).await), NodeFailure::BadArguments, "{bad}");
            let made = tree.create(node(bad, "")).await;
            assert_eq!(failure(made), NodeFailure::BadArguments, "{bad}");
        }
        let refused = client(&hosts).tree("default").exists("/").await.expect_err("no tree");
        assert_eq!(refused.kind(), Some(Kind::Unsupported));
        let acl = tree.acl("/a").await.expect("it has one");
        assert_eq!((acl[0].permissions, acl[0].id.as_str()), (31, "anyone"));
    });
}

#[test]
fn several_things_are_done_at_one_moment_or_none_of_them() {
    let (_cluster, hosts) = cluster();
    block_on(async {
        let tree = client(&hosts).tree("config");
        let path = || String::from("/a");
        let check = |version| item(Action::Check(NodeVersion { path: path(), version }));
        let set = NodeData { path: path(), data: Bytes::from_static(b"two"), version: Some(0) };
        let all = vec![
            item(Action::Create(node("/a", "one"))),
            item(Action::Set(set)),
            check(Some(1)),
            item(Action::Create(node("/a/b", ""))),
        ];
        let told = tree.multi(all).await.expect("it is done");
        assert_eq!(
            told.iter().map(|one| &one.path[..]).collect::<Vec<_>>(),
            ["/a", "", "", "/a/b"]
        );
        let delete = NodeVersion { path: String::from("/a/b"), version: None };
        let none = vec![item(Action::Delete(delete)), check(Some(7))];
        let refused = tree.multi(none).await.expect_err("the version is another");
        assert_eq!(refused.node_failure(), Some(NodeFailure::BadVersion));
        let ClientError::Refused(why) = refused else { panic!("it is refused") };
        assert_eq!(why.field, "items[1]");
        assert_eq!(tree.children("/a").await, Ok(vec![String::from("b")]), "nothing was done");
    });
}

#[test]
fn an_ephemeral_node_ends_with_its_session_and_not_with_its_host() {
    let (mut cluster, hosts) = cluster();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let session = runtime.block_on(async {
        let without = client(&hosts).tree("config").create(ephemeral("/x")).await;
        assert!(without.is_err(), "it needs a session");
        let session = open(&client(&hosts)).await;
        session.tree().create(ephemeral("/x")).await.expect("it is made");
        let below = session.tree().create(node("/x/y", "")).await;
        assert_eq!(failure(below), NodeFailure::NoChildrenForEphemerals);
        session
    });
    let owner = |tree: Tree| async move {
        tree.exists("/x").await.ok().flatten().map(|stat| stat.ephemeral_owner)
    };
    cluster.kill(&[1]);
    let others = runtime.block_on(async { client(&hosts[1..]).tree("config") });
    // The session goes on at another host.
    until("what it asks is done", || {
        runtime.block_on(async { session.tree().set("/x", "on", None).await.is_ok() })
    });
    assert_eq!(runtime.block_on(owner(others.clone())), Some(session.id()));
    runtime.block_on(async {
        session.close().await.expect("it is closed");
        assert_eq!(others.exists("/x").await, Ok(None));
    });
}

#[test]
fn what_was_shown_lets_a_session_do_what_others_may_not() {
    let (_cluster, hosts) = cluster();
    block_on(async {
        let session = open(&client(&hosts)).await;
        session.authenticate("digest", "ann:secret").await.expect("it is shown");
        let acl = quorate_client::v1::Acl { permissions: 31, scheme: "auth".into(), id: "".into() };
        let own = NewNode { acl: vec![acl], ..node("/own", "mine") };
        session.tree().create(own).await.expect("it is made");
        let stranger = client(&hosts).tree("config");
        let refused = stranger.get("/own").await.expect_err("it is another's");
        assert_eq!(
            (refused.kind(), failure::<()>(Err(refused))),
            (Some(Kind::Denied), NodeFailure::NoAuth)
        );
        let read = session.tree().get("/own").await.expect("it is its own");
        assert_eq!(read.data.as_deref(), Some(&b"mine"[..]));
    });
}

#[test]
fn behind_a_sync_a_session_reads_all_that_was_committed_before() {
    let (_cluster, hosts) = cluster_with(&[("reads", "session")]);
    block_on(async {
        let others: Vec<Tree> = hosts[1..]
            .iter()
            .map(|host| client(std::slice::from_ref(host)).tree("config"))
            .collect();
        others[0].create(node("/a", "")).await.expect("it is made");
        let session = open(&client(&hosts[..1])).await;
        for round in 0..20 {
            let other = &others[round % 2];
            let set = other.set("/a", round.to_string(), None).await.expect("it is set");
            let zxid = session.tree().sync().await.expect("it is answered");
            assert!(zxid >= set.mzxid, "it tells how far that is");
            let read = session.tree().get("/a").await.expect("it is there");
            assert_eq!(read.stat.mzxid, set.mzxid, "round {round}");
            // Without a session there is nothing to wait for, and it may be asked all the same.
            assert!(other.sync().await.expect("it is answered") >= set.mzxid);
        }
        session.close().await.expect("it is closed");
    });
}

#[test]
fn what_becomes_of_nodes_is_told_in_order() {
    let (_cluster, hosts) = cluster();
    block_on(async {
        let tree = client(&hosts).tree("config");
        let mut all = tree.watch("/a", true).await.expect("it is followed");
        let first = all.next().await.expect("it is told");
        assert_eq!((first.event.as_str(), first.path.as_str()), ("watching", "/a"));
        // What follows is done by another host.
        let other = client(&hosts[1..2]).tree("config");
        other.create(node("/a", "")).await.expect("it is made");
        other.create(node("/a/b", "")).await.expect("it is made");
        other.set("/a/b", "x", None).await.expect("it is set");
        other.delete("/a/b", None).await.expect("it is removed");
        let mut last = first.zxid;
        for expected in
            [("created", "/a"), ("created", "/a/b"), ("changed", "/a/b"), ("deleted", "/a/b")]
        {
            let told = all.next().await.expect("it is told");
            assert_eq!((told.event.as_str(), told.path.as_str()), expected);
            assert!(told.zxid > last, "in order");
            last = told.zxid;
        }
        let mut one = tree.watch("/a", false).await.expect("it is followed");
        one.next().await.expect("it is told");
        other.create(node("/a/c", "")).await.expect("it is made");
        let told = one.next().await.expect("it is told");
        assert_eq!((told.event.as_str(), told.path.as_str()), ("children", "/a"));
    });
}

#[test]
fn a_write_whose_answer_is_lost_is_done_once() {
    let (cluster, hosts) = cluster();
    let proxy = Proxy::before(cluster.grpc(1));
    block_on(async {
        let tree = client(std::slice::from_ref(&proxy.address)).tree("config");
        let numbered = NewNode { sequential: true, ..node("/n-", "") };
        tree.create(numbered.clone()).await.expect("it is made");
        proxy.loses.store(true, Ordering::Release);
        let (path, _) = tree.create(numbered).await.expect("it is made");
        assert!(!proxy.loses.load(Ordering::Acquire), "an answer was lost");
        assert_eq!(path, "/n-0000000001");
        let names = client(&hosts).tree("config").children("/").await.expect("it is listed");
        assert_eq!(names.iter().filter(|name| name.starts_with("n-")).count(), 2);
    });
}
