//! Keyspaces whose writes have one order: the last write of each key that was acknowledged is
//! there, and nothing from before it comes back.

use super::disk::{Disk, Unsynced};
use super::line::{Failed, Line};
use super::{lose_power, lose_twice, lose_unsynced};
use crate::support::cluster::{Cluster, until};
use crate::support::crew::{Crew, Shift};
use bytes::Bytes;
use quorate_api::v1::kv_client::KvClient;
use quorate_api::v1::reading::State;
use quorate_api::v1::{
    BatchGetRequest, DeleteRequest, GetRequest, Kind, Place, PutRequest, Reading, Receipt, place,
};
use quorate_check::places::{Ending, History, Read, judge};
use quorate_kernel::rng::Rng;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tonic::transport::Channel;

/// The keys the clients share.
const KEYS: u64 = 8;
/// How many of them are written while syncs do nothing.
const LAST: u64 = 2;
/// How many clients there are: each waits for rounds of the hosts, not for a processor.
const CLIENTS: usize = 36;
/// How many operations must be answered before and after each loss of power.
const SOME: usize = 150;
/// How long a client waits for an answer before it goes elsewhere.
const PATIENCE: Duration = Duration::from_secs(2);

fn key(number: u64) -> Bytes {
    Bytes::from(format!("key-{number}"))
}

/// One client.
struct Traveller {
    number: usize,
    rng: Rng,
    written: u64,
    /// The largest place that it was given.
    seen: Bytes,
}

fn after(place: &Bytes) -> Option<Place> {
    let is_any = !place.is_empty();
    is_any.then(|| Place { place: Some(place::Place::After(place.clone())) })
}

fn client(on: &Line) -> KvClient<Channel> {
    KvClient::new(on.channel())
}

fn get(on: &Line, key: &Bytes, behind: &Bytes) -> Result<(Option<Bytes>, Bytes), Failed> {
    let keyspace = String::from("default");
    let (key, place) = (key.clone(), after(behind));
    let asked = GetRequest { keyspace, key, place, ..GetRequest::default() };
    Ok(shown(on.ask(client(on).get(asked))?.reading.expect("an answer has it")))
}

/// The value and the place of an answer.
fn shown(reading: Reading) -> (Option<Bytes>, Bytes) {
    let value = match reading.state.expect("a state") {
        State::Absent(_) => None,
        State::Value(value) => Some(value),
        State::Siblings(siblings) => panic!("{siblings:?}"),
    };
    (value, token(reading.receipt))
}

/// Puts a value, or deletes without one.
fn set(on: &Line, key: &Bytes, value: Option<&Bytes>, behind: &Bytes) -> Result<Bytes, Failed> {
    let keyspace = String::from("default");
    let (key, place) = (key.clone(), after(behind));
    match value {
        Some(value) => {
            let value = value.clone();
            let asked = PutRequest { keyspace, key, value, place, ..PutRequest::default() };
            Ok(token(on.ask(client(on).put(asked))?.receipt))
        }
        None => {
            let asked = DeleteRequest { keyspace, key, place, ..DeleteRequest::default() };
            Ok(token(on.ask(client(on).delete(asked))?.receipt))
        }
    }
}

fn token(receipt: Option<Receipt>) -> Bytes {
    receipt.expect("answers carry places").token
}

impl Traveller {
    fn new(number: usize) -> Traveller {
        let rng = Rng::new(number as u64 + 1);
        Traveller { number, rng, written: 0, seen: Bytes::new() }
    }

    fn see(&mut self, place: &Bytes) {
        if *place > self.seen {
            self.seen = place.clone();
        }
    }

    /// Asks one thing, and says how that failed.
    fn turn(&mut self, on: &Line, history: &Mutex<History>, shift: &Shift) -> Result<(), Failed> {
        let key = key(self.rng.below(KEYS));
        let drawn = self.rng.below(20);
        let behind = if drawn.is_multiple_of(2) { self.seen.clone() } else { Bytes::new() };
        if drawn < 8 {
            let begun = shift.now();
            let (value, place) = get(on, &key, &behind)?;
            self.see(&place);
            let (after, place, ended) = (behind, Some(place), shift.now());
            let read = Read { key, value, after, place, begun, ended };
            history.lock().expect("no client panics with it").read(read);
            return Ok(());
        }
        self.written += 1;
        let value = Bytes::from(format!("{}-{}", self.number, self.written));
        self.write(on, (&key, (drawn < 17).then_some(value)), &behind, (history, shift))
    }

    fn write(
        &mut self,
        on: &Line,
        (key, value): (&Bytes, Option<Bytes>),
        behind: &Bytes,
        (history, shift): (&Mutex<History>, &Shift),
    ) -> Result<(), Failed> {
        let history = || history.lock().expect("no client panics with it");
        let write = history().begin(key, value.clone(), behind.clone(), shift.now());
        let told = set(on, key, value.as_ref(), behind);
        let ending = match &told {
            Ok(place) => Ending::Placed(place.clone()),
            Err(Failed::Refused(_)) => Ending::Refused,
            Err(_) => Ending::Unknown,
        };
        history().end(write, ending, shift.now());
        self.see(&told?);
        Ok(())
    }

    fn work(&mut self, doors: &[String], history: &Mutex<History>, shift: &Shift) {
        let (mut host, mut connection) = (self.number, None);
        while shift.goes_on() {
            let Some(on) = &connection else {
                host += 1;
                connection = Line::to(&doors[host % doors.len()], PATIENCE);
                continue;
            };
            match self.turn(on, history, shift) {
                Ok(()) => shift.answered(),
                Err(Failed::Refused(error)) => {
                    // Hosts that have lost nothing know the places that they have given.
                    assert_ne!(error.kind(), Kind::BadContext, "{error:?}");
                }
                Err(Failed::Unknown) => {}
                Err(Failed::Broken) => connection = None,
            }
        }
    }
}

/// What a host has of all keys, at one time; nothing if it is not to be had.
fn all_of(on: &Line, shift: &Shift) -> Option<Vec<Read>> {
    let (keyspace, keys) = (String::from("default"), (0..KEYS).map(key).collect());
    let begun = shift.now();
    let asked = BatchGetRequest { keyspace, keys, ..BatchGetRequest::default() };
    let readings = on.ask(client(on).batch_get(asked)).ok()?.readings;
    let ended = shift.now();
    let read = |(key, reading)| {
        let ((value, place), after) = (shown(reading), Bytes::new());
        Read { key, value, after, place: Some(place), begun, ended }
    };
    Some((0..KEYS).map(key).zip(readings).map(read).collect())
}

/// The history so far, with what all hosts have of all keys once they say the same.
fn in_the_end(doors: &[String], history: &Mutex<History>, shift: &Shift) -> History {
    let lines: Vec<Line> = doors.iter().map(|door| patient(door)).collect();
    let mut history = history.lock().expect("no client panics with it").clone();
    until("all hosts say the same", || {
        let all: Vec<Option<Vec<Read>>> = lines.iter().map(|on| all_of(on, shift)).collect();
        let are_there = all.iter().all(Option::is_some);
        all.into_iter().flatten().flatten().for_each(|read| history.read_at_quiescence(read));
        history.is_agreed() && are_there
    });
    history
}

/// A connection over which a call may take longer than any request.
fn patient(door: &str) -> Line {
    Line::to(door, Duration::from_secs(150)).expect("the door is open")
}

#[test]
fn writes_in_one_order_outlive_a_loss_of_power_of_all_hosts() {
    let more = ["--keyspace", "default=epidemic,round_ms=30"];
    let mut cluster = Cluster::create_with("sync", &more);
    let mut disk = Disk::under(&mut cluster);
    cluster.start_all();
    let doors: Vec<String> = (1..=3).map(|host| cluster.grpc(host)).collect();
    let history = Arc::new(Mutex::new(History::default()));
    let (all, common) = (doors.clone(), Arc::clone(&history));
    let mut crew = Crew::start(CLIENTS, move |number, shift| {
        Traveller::new(number).work(&all, &common, shift);
    });
    crew.more(SOME);
    lose_twice(|unsynced| {
        let lost = lose_unsynced(&mut cluster, &mut disk, unsynced);
        crew.more(SOME);
        lost
    });
    crew.end();
    let shift = crew.shift();
    let rates = judge(&in_the_end(&doors, &history, shift));
    let rates = rates.unwrap_or_else(|what| panic!("{what}"));
    // How many are stale is counted where the engine is simulated; here it is shown.
    println!("{rates:?}");
    assert!(rates.reads as usize > SOME / 2, "too little happened: {rates:?}");

    // The judge notices syncs that do nothing.
    disk.lie("");
    let (on, mut last) = (patient(&doors[1]), Traveller::new(CLIENTS));
    for key in (0..LAST).map(key) {
        until("it is acknowledged", || {
            last.written += 1;
            let value = Bytes::from(format!("last-{}", last.written));
            last.write(&on, (&key, Some(value)), &Bytes::new(), (&history, shift)).is_ok()
        });
    }
    lose_power(&mut cluster, &mut disk, Unsynced::Lost);
    let said = judge(&in_the_end(&doors, &history, shift));
    let said = said.expect_err("acknowledged writes are gone");
    assert!(said.ends_with("is lost"), "{said}");
}
