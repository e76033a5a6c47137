//! Keyspaces that keep siblings: no acknowledged value is lost but to who had seen it, and none
//! that was replaced or deleted comes back.

use super::disk::{Disk, Unsynced};
use super::{SOME, lose_power, lose_twice, lose_unsynced};
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::crew::{Crew, Shift};
use bytes::Bytes;
use quorate_check::siblings::{Basis, Ending, History, judge};
use quorate_doors::resp::client::RespReply;
use quorate_kernel::rng::Rng;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The keys the clients share.
const KEYS: u64 = 8;
/// How many clients there are: two on each host.
const CLIENTS: usize = 6;
/// How long a client waits for an answer before it goes elsewhere.
const PATIENCE: Duration = Duration::from_secs(1);

fn key(number: u64) -> Bytes {
    Bytes::from(format!("key-{number}"))
}

/// One client.
struct Shopper {
    number: usize,
    rng: Rng,
    written: u64,
    /// The newest context of each key.
    contexts: BTreeMap<Bytes, (Basis, Bytes)>,
}

/// What became of something that was asked.
enum Told {
    Answer(RespReply),
    Refused,
    Unknown,
    /// The connection cannot be used again.
    Nothing,
}

fn ask(on: &mut Client, args: &[&[u8]]) -> Told {
    match on.ask(args) {
        Err(_) => Told::Nothing,
        Ok(reply) => match reply.error_code() {
            None => Told::Answer(reply),
            Some(b"NOQUORUM" | b"OVERLOADED" | b"SHUTDOWN") => Told::Refused,
            Some(b"UNKNOWNOUTCOME") => Told::Unknown,
            Some(_) => panic!("{reply:?}"),
        },
    }
}

/// The context and the values of an answer to a get.
fn values(reply: RespReply) -> (Bytes, Vec<Bytes>) {
    let RespReply::Array(parts) = &reply else { panic!("{reply:?}") };
    let [RespReply::Bulk(context), RespReply::Array(values)] = &parts[..] else {
        panic!("{reply:?}")
    };
    let bytes = |value: &RespReply| match value {
        RespReply::Bulk(value) => value.clone(),
        other => panic!("{other:?}"),
    };
    let mut values: Vec<Bytes> = values.iter().map(bytes).collect();
    values.sort_unstable();
    (context.clone(), values)
}

impl Shopper {
    fn new(number: usize) -> Shopper {
        let rng = Rng::new(number as u64 + 1);
        Shopper { number, rng, written: 0, contexts: BTreeMap::new() }
    }

    /// Asks one thing. Whether it was answered; nothing if the connection cannot be used again.
    fn turn(&mut self, on: &mut Client, history: &Mutex<History>) -> Option<bool> {
        let key = key(self.rng.below(KEYS));
        let drawn = self.rng.below(20);
        if drawn < 8 {
            return self.read(on, &key, history);
        }
        // Some writes have seen nothing.
        let known = self.contexts.get(&key).filter(|_| !drawn.is_multiple_of(4)).cloned();
        let is_delete = drawn >= 17 && known.is_some();
        let (basis, context) = known.unwrap_or((Basis::Blind, Bytes::new()));
        self.written += 1;
        let value = Bytes::from(format!("{}-{}", self.number, self.written));
        let value = (!is_delete).then_some(value);
        self.write(on, (&key, value), (basis, &context), history)
    }

    fn read(&mut self, on: &mut Client, key: &Bytes, history: &Mutex<History>) -> Option<bool> {
        match ask(on, &[b"CGET", key]) {
            Told::Answer(reply) => {
                let (context, values) = values(reply);
                let read = history.lock().expect("no client panics with it").read(key, values);
                self.contexts.insert(key.clone(), (Basis::Read(read), context));
                Some(true)
            }
            Told::Refused | Told::Unknown => Some(false),
            Told::Nothing => None,
        }
    }

    fn write(
        &mut self,
        on: &mut Client,
        (key, value): (&Bytes, Option<Bytes>),
        (basis, context): (Basis, &Bytes),
        history: &Mutex<History>,
    ) -> Option<bool> {
        let history = || history.lock().expect("no client panics with it");
        let write = history().write(key, value.clone(), basis);
        let told = match &value {
            Some(value) => ask(on, &[b"CSET", key, context, value]),
            None => ask(on, &[b"CDEL", key, context]),
        };
        let (ending, answered) = match told {
            Told::Answer(RespReply::Bulk(context)) => {
                if !context.is_empty() {
                    self.contexts.insert(key.clone(), (Basis::Write(write), context));
                }
                (Ending::Stored, Some(true))
            }
            Told::Answer(other) => panic!("{other:?}"),
            Told::Refused => (Ending::Refused, Some(false)),
            Told::Unknown => (Ending::Unknown, Some(false)),
            Told::Nothing => (Ending::Unknown, None),
        };
        history().end(write, ending);
        answered
    }

    fn work(&mut self, doors: &[String], history: &Mutex<History>, shift: &Shift) {
        let (mut host, mut connection) = (self.number, None);
        while shift.goes_on() {
            let Some(on) = &mut connection else {
                host += 1;
                connection = Client::connect(&doors[host % doors.len()], PATIENCE).ok();
                continue;
            };
            match self.turn(on, history) {
                Some(true) => shift.answered(),
                Some(false) => {}
                None => connection = None,
            }
        }
    }
}

/// The history so far, with what all hosts have of all keys once they say the same.
fn in_the_end(cluster: &Cluster, history: &Mutex<History>) -> History {
    let mut hosts: Vec<Client> = cluster.doors().iter().map(|door| Client::to(door)).collect();
    // What is under way meanwhile belongs to clients who have ended.
    let mut history = history.lock().expect("no client panics with it").clone();
    let mut all = Vec::new();
    until("all hosts say the same", || {
        all = hosts.iter_mut().map(all_of).collect();
        all.iter().all(|one: &Option<_>| one.is_some() && *one == all[0])
    });
    for of_host in all.into_iter().flatten() {
        for (number, values) in (0..).zip(of_host) {
            history.read_at_quiescence(&key(number), values);
        }
    }
    history
}

/// What a host alone has of each key, unless it is not to be had yet.
fn all_of(host: &mut Client) -> Option<Vec<Vec<Bytes>>> {
    let of_key = |number| match ask(host, &[b"CGET", &key(number)]) {
        Told::Answer(reply) => Some(values(reply).1),
        _ => None,
    };
    (0..KEYS).map(of_key).collect()
}

fn begin(cluster: &Cluster, history: &Arc<Mutex<History>>, first: usize) -> Crew {
    let (doors, history) = (cluster.doors(), Arc::clone(history));
    Crew::start(CLIENTS, move |number, shift| {
        Shopper::new(first + number).work(&doors, &history, shift);
    })
}

#[test]
fn siblings_outlive_a_loss_of_power_of_all_hosts() {
    let mut cluster = Cluster::create_with("sync", &["--keyspace", "default=causal,partitions=9"]);
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let history = Arc::new(Mutex::new(History::default()));
    let mut crew = begin(&cluster, &history, 0);
    crew.more(SOME);
    lose_twice(|unsynced| {
        let lost = lose_unsynced(&mut cluster, &mut disk, unsynced);
        crew.more(SOME);
        lost
    });
    crew.end();
    let whole = in_the_end(&cluster, &history);
    println!("{} writes were acknowledged", whole.stored());
    assert!(whole.stored() > SOME, "too little happened");
    assert_eq!(judge(&whole), Ok(()));

    // The judge notices syncs that do nothing.
    disk.lie("");
    let (mut last, mut on) = (Shopper::new(CLIENTS), Client::to(&cluster.resp(2)));
    for number in 0..KEYS {
        let pair = (&key(number), Some(Bytes::from(format!("last-{number}"))));
        let answered = last.write(&mut on, pair, (Basis::Blind, &Bytes::new()), &history);
        assert_eq!(answered, Some(true), "one host is enough");
    }
    lose_power(&mut cluster, &mut disk, Unsynced::Lost);
    let said = judge(&in_the_end(&cluster, &history)).expect_err("acknowledged values are gone");
    assert!(said.ends_with("was acknowledged and is lost"), "{said}");
}
