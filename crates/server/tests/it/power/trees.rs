//! Trees: no acknowledged change of a node is lost, no node that was removed comes back, no number
//! of a change or of a node is given twice, and a session goes on with its ephemeral node.

use super::disk::{Disk, Unsynced};
use super::line::{Failed, Line};
use super::{SOME, lose_power, lose_twice, lose_unsynced};
use crate::native::rustclient::{block_on, client};
use crate::native::tree::node;
use crate::support::cluster::{Cluster, until};
use crate::support::crew::{Crew, Shift};
use bytes::Bytes;
use quorate_api::v1::tree_client::TreeClient;
use quorate_api::v1::{
    self, CreateNodeRequest, DeleteNodeRequest, GetNodeRequest, NewNode, NodeExistsRequest,
    NodeFailure, NodeKind, SetNodeRequest,
};
use quorate_check::STEPS_MAX_DEFAULT;
use quorate_check::history::{ClientId, Completion};
use quorate_check::tree::{Record, judge};
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Time;
use quorate_kernel::tree::{
    Acl, Act, Ask, Failure, Item, Kind, SessionId, Stat, Told, TreeReply, Zxid,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tonic::transport::Channel;

/// The tree of the client that has a session: the judge knows nothing of it.
const HELD: &str = "held";
/// How long that client may be silent: longer than a busy machine makes it.
const SILENCE: Duration = Duration::from_secs(30);
/// The nodes the clients share.
const NODES: u64 = 8;
/// How many clients there are: two on each host.
const CLIENTS: usize = 6;
/// How long a client waits for an answer before it goes elsewhere.
const PATIENCE: Duration = Duration::from_secs(1);

fn path(number: u64) -> String {
    format!("/node-{number}")
}

/// What is asked, in the words of the judge.
fn create(path: &str, data: &Bytes) -> Item {
    let (path, data, kind) = (path.to_owned(), Some(data.clone()), Kind::Persistent);
    Item::Create { path, data, acl: Acl::open(), kind, sequential: false }
}

fn set(path: &str, data: &Bytes) -> Item {
    Item::Set { path: path.to_owned(), data: Some(data.clone()), version: None }
}

fn stat(of: Option<v1::Stat>) -> Stat {
    let of = of.expect("a stat");
    Stat {
        czxid: Zxid(of.czxid),
        mzxid: Zxid(of.mzxid),
        pzxid: Zxid(of.pzxid),
        ctime: of.ctime_ms,
        mtime: of.mtime_ms,
        version: of.version,
        cversion: of.cversion,
        aversion: of.aversion,
        ephemeral_owner: SessionId(of.ephemeral_owner),
        data_length: of.data_length,
        children: of.children,
    }
}

/// Asks a host for something, and says in the words of the judge what was told.
fn ask(on: &Line, item: &Item) -> Result<TreeReply, Failed> {
    let keyspace = || String::from("default");
    let mut tree: TreeClient<Channel> = TreeClient::new(on.channel());
    let (zxid, told) = match item.clone() {
        Item::Create { path, data, .. } => {
            let node = NewNode { path, data: data.unwrap_or_default(), ..NewNode::default() };
            let (keyspace, node) = (keyspace(), Some(node));
            let asked = CreateNodeRequest { keyspace, node, ..CreateNodeRequest::default() };
            let told = on.ask(tree.create(asked))?;
            (told.zxid, Ok(Told::Created { path: told.path, stat: stat(told.stat) }))
        }
        Item::Set { path, data, .. } => {
            let (keyspace, data) = (keyspace(), data.unwrap_or_default());
            let asked = SetNodeRequest { keyspace, path, data, ..SetNodeRequest::default() };
            let told = on.ask(tree.set(asked))?;
            (told.zxid, Ok(Told::Stat(stat(told.stat))))
        }
        Item::Delete { path, .. } => {
            let keyspace = keyspace();
            let asked = DeleteNodeRequest { keyspace, path, ..DeleteNodeRequest::default() };
            (on.ask(tree.delete(asked))?.zxid, Ok(Told::Done))
        }
        Item::Get { path, .. } => {
            let keyspace = keyspace();
            let asked = GetNodeRequest { keyspace, path, ..GetNodeRequest::default() };
            let told = on.ask(tree.get(asked))?;
            (told.zxid, Ok(Told::Data { data: told.data, stat: stat(told.stat) }))
        }
        Item::Exists { path, .. } => {
            let keyspace = keyspace();
            let asked = NodeExistsRequest { keyspace, path, ..NodeExistsRequest::default() };
            let told = on.ask(tree.exists(asked))?;
            let is_there = told.stat.is_some();
            let of = is_there.then(|| Told::Stat(stat(told.stat))).ok_or(Failure::NoNode);
            (told.zxid, of)
        }
        other => unreachable!("{other:?} is never asked"),
    };
    Ok(TreeReply { zxid: Zxid(zxid), told })
}

/// The same, recorded.
fn asked(
    on: &Line,
    client: usize,
    item: Item,
    (record, shift): (&Mutex<Record>, &Shift),
) -> Result<TreeReply, Failed> {
    let client = ClientId(u32::try_from(client).expect("clients are few"));
    let act = Act::One(item.clone());
    let operation = Operation::Tree(Box::new(Ask { session: None, opening: None, act }));
    let record = || record.lock().expect("no client panics with it");
    // Times are taken with the lock, so that they only grow.
    let number = {
        let mut record = record();
        record.ask(client, None, operation, Time(shift.now()))
    };
    let told = ask(on, &item);
    let completion = match &told {
        Ok(reply) => Completion::Tree(reply.clone()),
        // Which failure of the tree it was is left out: reads that find nothing ask otherwise.
        Err(Failed::Refused(_)) => Completion::Refused,
        Err(_) => Completion::Unknown,
    };
    let mut record = record();
    record.answer(number, completion, Time(shift.now()));
    told
}

fn work(number: usize, doors: &[String], record: &Mutex<Record>, shift: &Shift) {
    let mut rng = Rng::new(number as u64 + 1);
    let (mut host, mut connection, mut written) = (number, None, 0);
    while shift.goes_on() {
        let Some(on) = &connection else {
            host += 1;
            connection = Line::to(&doors[host % doors.len()], PATIENCE);
            continue;
        };
        let path = path(rng.below(NODES));
        written += 1;
        let data = Bytes::from(format!("{number}-{written}"));
        let item = match rng.below(20) {
            0..4 => Item::Get { path, watch: false },
            4..8 => Item::Exists { path, watch: false },
            8..14 => set(&path, &data),
            14..18 => create(&path, &data),
            _ => Item::Delete { path, version: None },
        };
        match asked(on, number, item, (record, shift)) {
            Ok(_) => shift.answered(),
            Err(Failed::Refused(_) | Failed::Unknown) => {}
            Err(Failed::Broken) => connection = None,
        }
    }
}

/// The record so far, with what every host has of every node.
fn in_the_end(doors: &[String], record: &Mutex<Record>, shift: &Shift) -> Record {
    for door in doors {
        // Longer than any request may take.
        let on = Line::to(door, Duration::from_secs(150)).expect("the door is open");
        for path in (0..NODES).map(path) {
            until("every node can be looked at", || {
                let exists = Item::Exists { path: path.clone(), watch: false };
                match asked(&on, CLIENTS, exists, (record, shift)) {
                    Ok(reply) if reply.told.is_err() => true,
                    Ok(_) => {
                        let get = Item::Get { path: path.clone(), watch: false };
                        asked(&on, CLIENTS, get, (record, shift)).is_ok()
                    }
                    Err(_) => false,
                }
            });
        }
    }
    record.lock().expect("no client panics with it").clone()
}

/// Makes numbered nodes in a session that has an ephemeral one, until the shift is over: the
/// session goes on, all are there, and no number was given twice.
async fn hold(hosts: &[String], shift: &Shift) {
    let tree = client(hosts).tree(HELD);
    let session = tree.open(SILENCE).await.expect("it is opened");
    let own = NewNode { kind: NodeKind::Ephemeral.into(), ..node("/own", "") };
    session.tree().create(own).await.expect("it is made");
    let numbered = NewNode { sequential: true, ..node("/numbered-", "") };
    let mut made: Vec<String> = Vec::new();
    while shift.goes_on() {
        match session.tree().create(numbered.clone()).await {
            Ok((path, _)) => {
                assert!(made.last().is_none_or(|last| *last < path), "{path} after {made:?}");
                made.push(path);
                shift.answered();
            }
            Err(error) => {
                let why = error.node_failure();
                assert_ne!(why, Some(NodeFailure::SessionExpired), "it was never silent");
            }
        }
    }
    let names = session.tree().children("/").await.expect("they are listed");
    let lost = made.iter().find(|path| !names.iter().any(|name| *name == path[1..]));
    assert_eq!(lost, None, "what was acknowledged is lost");
    let own = tree.exists("/own").await.expect("it is answered").expect("it is there");
    assert_eq!(own.ephemeral_owner, session.id());
    session.close().await.expect("it is closed");
    assert_eq!(tree.exists("/own").await, Ok(None));
}

#[test]
fn trees_outlive_a_loss_of_power_of_all_hosts() {
    let held = format!("{HELD}=coordination");
    let more = ["--keyspace", "default=coordination", "--keyspace", &held];
    let mut cluster = Cluster::create_with("sync", &more);
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let doors: Vec<String> = (1..=3).map(|host| cluster.grpc(host)).collect();
    let record = Arc::new(Mutex::new(Record::default()));
    let (all, common) = (doors.clone(), Arc::clone(&record));
    let mut crew = Crew::start(CLIENTS, move |number, shift| work(number, &all, &common, shift));
    until("the other tree is served", || {
        block_on(async { client(&doors).tree(HELD).exists("/").await.is_ok() })
    });
    let hosts = doors.clone();
    let mut holder = Crew::start(1, move |_, shift| block_on(hold(&hosts, shift)));
    holder.more(1);
    crew.more(SOME);
    lose_twice(|unsynced| {
        let lost = lose_unsynced(&mut cluster, &mut disk, unsynced);
        crew.more(SOME);
        holder.more(1);
        lost
    });
    crew.end();
    holder.end();
    let shift = crew.shift();
    let verdict = judge(&in_the_end(&doors, &record, shift), STEPS_MAX_DEFAULT);
    assert!(verdict.is_holding(), "{verdict}");

    // The judge notices syncs that do nothing.
    disk.lie("");
    let on = Line::to(&doors[1], Duration::from_secs(150)).expect("the door is open");
    for (number, path) in (0..NODES).map(|number| (number, path(number))) {
        let data = Bytes::from(format!("last-{number}"));
        // Whichever of the two the tree allows.
        until("it is acknowledged", || {
            let common = (&*record, shift);
            asked(&on, CLIENTS, set(&path, &data), common).is_ok()
                || asked(&on, CLIENTS, create(&path, &data), common).is_ok()
        });
    }
    lose_power(&mut cluster, &mut disk, Unsynced::Lost);
    let verdict = judge(&in_the_end(&doors, &record, shift), STEPS_MAX_DEFAULT);
    assert!(verdict.is_violated(), "acknowledged changes are gone: {verdict}");
}
