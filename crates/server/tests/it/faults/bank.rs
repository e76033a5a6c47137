//! Transactions of real hosts that are killed, stopped and started again: registers are judged as
//! anywhere, and money that is moved between accounts is neither made nor lost.

use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::load::Load;
use crate::support::run::quorate;
use quorate_doors::resp::client::RespReply;
use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How many operations must be answered before, during and after a fault.
const SOME: usize = 300;
/// How many transfers, and how many audits, must be answered after each fault.
const FEW: u64 = 30;
const ACCOUNTS: usize = 6;
const EACH: i64 = 100;
/// How long a client waits for an answer before it goes elsewhere.
const PATIENCE: Duration = Duration::from_secs(2);

fn start(durability: &str) -> Cluster {
    let mut cluster = Cluster::create_with(durability, &["--keyspace", "default=serializable"]);
    cluster.start_all();
    cluster
}

fn kill_one_after_the_other(cluster: &mut Cluster, more: &dyn Fn()) {
    for host in [2, 3, 1] {
        cluster.kill(&[host]);
        more();
        cluster.restart(host);
        more();
    }
}

/// Registers of transactional keyspaces while `harm` is done; what it waits for is answered.
fn registers(durability: &str, harm: impl FnOnce(&mut Cluster, &dyn Fn())) {
    let mut cluster = start(durability);
    let load = Load::start(cluster.doors());
    let more = || load.more(SOME);
    more();
    harm(&mut cluster, &more);
    more();
    let recorded = load.finish(&[1, 2, 3]);
    recorded.must_hold(2 * SOME);
    let report = recorded.without_a_final_write().judged();
    assert!(report.order.is_violated(), "a value from nowhere: {report}");
}

#[test]
fn registers_lose_nothing_whoever_is_killed() {
    registers("sync", kill_one_after_the_other);
}

#[test]
fn registers_in_memory_lose_nothing_while_one_at_a_time_is_killed() {
    registers("memory", kill_one_after_the_other);
}

#[test]
fn registers_lose_nothing_when_all_hosts_are_killed_at_once() {
    registers("sync", |cluster, more| {
        for _ in 0..2 {
            cluster.kill(&[1, 2, 3]);
            cluster.start_all();
            more();
        }
    });
}

#[test]
fn a_stopped_host_is_done_without_also_where_it_led() {
    registers("sync", |cluster, more| {
        for host in [3, 1, 2] {
            cluster.signal(host, Signal::STOP);
            more();
            cluster.signal(host, Signal::CONT);
            more();
        }
    });
}

/// What the clients of the bank share.
#[derive(Default)]
struct Common {
    is_over: AtomicBool,
    /// Transfers that were told to be done.
    moved: AtomicU64,
    /// Transfers of which nobody knows.
    unclear: AtomicU64,
    /// Audits that were answered.
    audits: AtomicU64,
}

struct Bank {
    common: Arc<Common>,
    threads: Vec<JoinHandle<()>>,
}

fn account(number: usize) -> Vec<u8> {
    format!("account-{}", number % ACCOUNTS).into_bytes()
}

fn number(reply: &RespReply) -> Option<i64> {
    std::str::from_utf8(reply.as_bytes()?).ok()?.parse().ok()
}

/// Moves one from an account to another, if nobody else has touched them; whether that was done.
fn transfer(on: &mut Client, from: &[u8], to: &[u8], common: &Common) -> std::io::Result<bool> {
    if on.ask(&[b"WATCH", from, to])?.error_code().is_some() {
        return Ok(false);
    }
    let (has, other) = (on.ask(&[b"GET", from])?, on.ask(&[b"GET", to])?);
    let (Some(has), Some(other)) = (number(&has), number(&other)) else {
        on.ask(&[b"UNWATCH"])?;
        return Ok(false);
    };
    on.ask(&[b"MULTI"])?;
    on.ask(&[b"SET", from, (has - 1).to_string().as_bytes()])?;
    on.ask(&[b"SET", to, (other + 1).to_string().as_bytes()])?;
    on.ask(&[b"INCR", b"moved"])?;
    // Nobody knows, unless it is told.
    common.unclear.fetch_add(1, Ordering::SeqCst);
    let told = on.ask(&[b"EXEC"])?;
    let is_done = matches!(&told, RespReply::Array(parts) if parts.len() == 3);
    let is_unclear = told.error_code().is_some_and(|code| code == b"UNKNOWNOUTCOME");
    assert!(is_done || is_unclear || told == RespReply::Null || told.error_code().is_some());
    if !is_unclear {
        common.unclear.fetch_sub(1, Ordering::SeqCst);
    }
    common.moved.fetch_add(u64::from(is_done), Ordering::SeqCst);
    Ok(is_done)
}

/// Reads all accounts in one transaction: what is there is always the same.
fn audit(on: &mut Client) -> std::io::Result<bool> {
    let names: Vec<Vec<u8>> = (0..ACCOUNTS).map(account).collect();
    let mut ask: Vec<&[u8]> = vec![b"MGET"];
    ask.extend(names.iter().map(Vec::as_slice));
    let RespReply::Array(values) = on.ask(&ask)? else { return Ok(false) };
    let sum: i64 = values.iter().map(|value| number(value).expect("each account is there")).sum();
    assert_eq!(sum, EACH * ACCOUNTS as i64, "money is neither made nor lost: {values:?}");
    Ok(true)
}

impl Bank {
    fn open(cluster: &Cluster) -> Bank {
        let mut client = Client::to(&cluster.resp(1));
        let (names, each) = ((0..ACCOUNTS).map(account), EACH.to_string());
        let names: Vec<Vec<u8>> = names.collect();
        let mut put: Vec<&[u8]> = vec![b"MSET"];
        names.iter().for_each(|name| put.extend([name, each.as_bytes()]));
        // Nobody else writes yet, so it may be done twice where a busy disk has kept it waiting.
        until("the accounts are there", || client.told_at_last(&put) == "OK");
        let (common, doors) = (Arc::new(Common::default()), cluster.doors());
        let work = |at: usize| {
            let (common, doors) = (Arc::clone(&common), doors.clone());
            thread::spawn(move || run(at, &common, &doors))
        };
        let threads = (0..6).map(work).collect();
        Bank { common, threads }
    }

    fn more(&self) {
        let counts =
            || [&self.common.moved, &self.common.audits].map(|it| it.load(Ordering::SeqCst));
        let before = counts();
        until("money is moved, and audits are answered", || {
            assert!(self.threads.iter().all(|it| !it.is_finished()), "a client has ended");
            counts().iter().zip(before).all(|(now, before)| *now >= before + FEW)
        });
    }

    fn close(mut self, cluster: &Cluster) {
        self.common.is_over.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(|it| it.join().expect("no client panics"));
        let [moved, unclear] =
            [&self.common.moved, &self.common.unclear].map(|it| it.load(Ordering::SeqCst));
        for host in 1..=3 {
            let mut client = Client::to(&cluster.resp(host));
            until("all accounts are read", || audit(&mut client).expect("the host answers"));
            let counted: u64 = client.told_at_last(&[b"GET", b"moved"]).parse().expect("a number");
            let range = moved..=moved + unclear;
            assert!(range.contains(&counted), "{counted} transfers are counted, not of {range:?}");
        }
    }
}

impl Drop for Bank {
    fn drop(&mut self) {
        self.common.is_over.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(|it| drop(it.join()));
    }
}

/// Some move money, others count it.
fn run(at: usize, common: &Common, doors: &[String]) {
    let (mut connection, mut tries) = (None, 0);
    while !common.is_over.load(Ordering::SeqCst) {
        tries += 1;
        let Some(on) = &mut connection else {
            let door = &doors[(at + tries) % doors.len()];
            connection = Client::connect(door, PATIENCE).ok();
            thread::sleep(Duration::from_millis(2));
            continue;
        };
        let done = if at.is_multiple_of(3) {
            audit(on).inspect(|is_done| {
                common.audits.fetch_add(u64::from(*is_done), Ordering::SeqCst);
            })
        } else {
            transfer(on, &account(at + tries), &account(at + tries + 1 + tries % 5), common)
        };
        if done.is_err() {
            connection = None;
        }
    }
}

fn harmed(durability: &str, harm: impl FnOnce(&mut Cluster, &dyn Fn())) {
    let mut cluster = start(durability);
    let bank = Bank::open(&cluster);
    let more = || bank.more();
    more();
    harm(&mut cluster, &more);
    more();
    bank.close(&cluster);
}

#[test]
fn money_is_neither_made_nor_lost_whoever_is_killed() {
    harmed("sync", kill_one_after_the_other);
}

#[test]
fn money_is_neither_made_nor_lost_when_hosts_stop_and_all_are_killed() {
    harmed("sync", |cluster, more| {
        for host in [1, 2, 3] {
            cluster.signal(host, Signal::STOP);
            more();
            cluster.signal(host, Signal::CONT);
        }
        cluster.kill(&[1, 2, 3]);
        cluster.start_all();
        more();
    });
}

/// Waits until every host knows that all buckets are where they should be.
fn have_moved(cluster: &Cluster) {
    for host in 1..=3 {
        until("buckets have moved", || {
            let status = cluster.status(host);
            let keyspaces = status["keyspaces"].as_array().expect("keyspaces");
            let of = keyspaces.iter().find(|of| of["name"] == "default").expect("it is there");
            of["state"]["buckets_to_move"] == "0"
        });
    }
}

fn alter_groups(cluster: &Cluster, groups: u32) {
    let (http, groups) = (cluster.http(2), format!("groups={groups}"));
    let said = quorate(&["keyspace", "alter", "default", &groups, "--http", &http]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn money_is_neither_made_nor_lost_while_groups_come_and_go() {
    harmed("sync", |cluster, more| {
        alter_groups(cluster, 3);
        more();
        have_moved(cluster);
        alter_groups(cluster, 1);
        kill_one_after_the_other(cluster, more);
        have_moved(cluster);
        alter_groups(cluster, 2);
        cluster.kill(&[1, 2, 3]);
        cluster.start_all();
        more();
        have_moved(cluster);
    });
}

#[test]
fn groups_of_what_is_not_synced_stay_as_they_are() {
    let cluster = start("memory");
    let http = cluster.http(1);
    let said = quorate(&["keyspace", "alter", "default", "groups=3", "--http", &http]);
    assert!(said.code != 0 && said.err.contains("durability"), "{said:?}");
}
