//! Clients that read and write a few keys while hosts fail, and the history of what they were told.

use crate::support::client::Client;
use crate::support::cluster::until;
use bytes::Bytes;
use quorate_check::STEPS_MAX_DEFAULT;
use quorate_check::history::{ClientId, Completion, Recorder};
use quorate_check::judge_all;
use quorate_check::report::Report;
use quorate_doors::resp::client::RespReply;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Time;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The keys the clients share.
const KEYS: u64 = 8;
/// How many clients there are: two on each host.
const CLIENTS: u32 = 6;
/// How long a client waits for an answer before it goes elsewhere.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause after each operation: the judges look at every operation, so a history is kept small.
const PAUSE: Duration = Duration::from_millis(1);
/// How many operations a client that roams asks of one host before it goes to the next.
const STAY: u32 = 20;

/// An operation and what became of it.
#[derive(Clone, Debug)]
pub struct Record {
    pub client: ClientId,
    pub operation: Operation,
    pub invoked: Time,
    pub completed: Time,
    pub completion: Completion,
}

/// What all clients share.
struct Common {
    doors: Vec<String>,
    epoch: Instant,
    is_over: AtomicBool,
    is_read_only: AtomicBool,
    /// Clients go from host to host, also without need.
    is_roaming: bool,
    /// How many bytes a value has at least.
    value_bytes: usize,
    /// Operations answered by each host.
    answered: Vec<AtomicUsize>,
    records: Mutex<Vec<Record>>,
}

impl Common {
    fn now(&self) -> Time {
        let elapsed = self.epoch.elapsed().as_nanos();
        Time(u64::try_from(elapsed).expect("a test is short"))
    }

    /// A value that is told from others by its name.
    fn value(&self, name: &str) -> Bytes {
        let mut value = name.as_bytes().to_vec();
        value.resize(self.value_bytes.max(value.len()), b'.');
        Bytes::from(value)
    }

    /// Asks and records what came of it; `None` if the connection cannot be used again.
    fn ask(&self, on: &mut Client, client: ClientId, operation: Operation) -> Option<Completion> {
        let invoked = self.now();
        let reply = ask(on, &operation);
        let completed = self.now();
        let is_usable = reply.is_ok();
        let completion = reply.map_or(Completion::Unknown, |reply| told(&operation, reply));
        let record =
            Record { client, operation, invoked, completed, completion: completion.clone() };
        self.records.lock().expect("no client panics with the lock").push(record);
        is_usable.then_some(completion)
    }

    fn run(&self, client: ClientId) {
        let mut rng = Rng::new(u64::from(client.0) + 1);
        let (mut host, mut written) = (client.0 as usize % self.doors.len(), 0_u64);
        let (mut connection, mut asked) = (None, 0);
        while !self.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
            if self.is_roaming && asked == STAY {
                connection = None;
            }
            let Some(on) = &mut connection else {
                (host, asked) = ((host + 1) % self.doors.len(), 0);
                // Nothing was asked, so nothing is recorded.
                connection = Client::connect(&self.doors[host], PATIENCE).ok();
                continue;
            };
            asked += 1;
            let key = key(rng.below(KEYS));
            let drawn = rng.below(20);
            let operation = match drawn {
                _ if self.is_read_only.load(Ordering::Relaxed) => Operation::get(key),
                0..10 => Operation::get(key),
                10..18 => {
                    written += 1;
                    Operation::put(key, self.value(&format!("{client}-{written}")))
                }
                _ => Operation::delete(key),
            };
            match self.ask(on, client, operation) {
                None => connection = None,
                // Who roams does not wait where nothing is to be had.
                Some(Completion::Refused | Completion::Unknown) => asked = STAY,
                Some(_) => {
                    self.answered[host].fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

fn key(number: u64) -> Bytes {
    Bytes::from(format!("key-{number}"))
}

fn ask(on: &mut Client, operation: &Operation) -> io::Result<RespReply> {
    match operation {
        Operation::Get { key, .. } => on.ask(&[b"GET", key]),
        Operation::Put { key, value, .. } => on.ask(&[b"SET", key, value]),
        Operation::Delete { key, .. } => on.ask(&[b"DEL", key]),
        Operation::Scan { .. }
        | Operation::Transact { .. }
        | Operation::Tree(_)
        | Operation::HowEnded { .. } => {
            unreachable!("the load asks for one key at a time")
        }
    }
}

fn told(operation: &Operation, reply: RespReply) -> Completion {
    let completion = match (reply.error_code(), &reply) {
        (Some(b"NOQUORUM" | b"OVERLOADED" | b"SHUTDOWN"), _) => Completion::Refused,
        (Some(_), _) => Completion::Unknown,
        (None, RespReply::Null) => Completion::Value(None),
        (None, RespReply::Bulk(value)) => Completion::Value(Some(value.clone())),
        (None, RespReply::Simple(_)) => Completion::Written,
        (None, RespReply::Integer(count)) => Completion::Deleted { existed: *count == 1 },
        _ => panic!("{operation:?} was answered with {reply:?}"),
    };
    assert!(completion.fits(operation), "{operation:?} was answered with {reply:?}");
    completion
}

/// Clients at work.
pub struct Load {
    common: Arc<Common>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts the clients on these doors.
    pub fn start(doors: Vec<String>) -> Load {
        Load::begin(doors, false, 0)
    }

    /// Starts clients whose values have so many bytes.
    pub fn heavy(doors: Vec<String>, value_bytes: usize) -> Load {
        Load::begin(doors, false, value_bytes)
    }

    /// Starts clients that go from door to door, so that each host is asked all the time.
    pub fn roaming(doors: Vec<String>) -> Load {
        Load::begin(doors, true, 0)
    }

    fn begin(doors: Vec<String>, is_roaming: bool, value_bytes: usize) -> Load {
        let common = Arc::new(Common {
            answered: doors.iter().map(|_| AtomicUsize::new(0)).collect(),
            doors,
            epoch: Instant::now(),
            is_over: AtomicBool::new(false),
            is_read_only: AtomicBool::new(false),
            is_roaming,
            value_bytes,
            records: Mutex::new(Vec::new()),
        });
        let client = |number| {
            let common = Arc::clone(&common);
            std::thread::spawn(move || common.run(ClientId(number)))
        };
        let threads = (0..CLIENTS).map(client).collect();
        Load { common, threads }
    }

    /// Waits until this many more operations were answered by the cluster.
    pub fn more(&self, count: usize) {
        let answered = || -> usize {
            self.common.answered.iter().map(|host| host.load(Ordering::Relaxed)).sum()
        };
        let goal = answered() + count;
        until("clients are answered", || answered() >= goal);
    }

    /// Waits until each of these hosts answered this many more operations.
    pub fn more_on(&self, hosts: &[usize], count: usize) {
        let answered = |host: usize| self.common.answered[host - 1].load(Ordering::Relaxed);
        let goals: Vec<usize> = hosts.iter().map(|&host| answered(host) + count).collect();
        for (&host, goal) in hosts.iter().zip(goals) {
            until(&format!("host {host} answers clients"), || answered(host) >= goal);
        }
    }

    /// Whether clients only read from now on. What they have asked before may be under way still,
    /// unless no host runs.
    pub fn only_read(&self, is_so: bool) {
        self.common.is_read_only.store(is_so, Ordering::Relaxed);
    }

    /// Reads every key on every host given.
    pub fn read_all(&self, hosts: &[usize]) {
        for &host in hosts {
            let mut on = Client::to(&self.common.doors[host - 1]);
            for number in 0..KEYS {
                let operation = Operation::get(key(number));
                // A host that was just started may still lack the others.
                until("every key can be read", || {
                    let reader = ClientId(CLIENTS);
                    let completion = self.common.ask(&mut on, reader, operation.clone());
                    matches!(completion.expect("the host answers"), Completion::Value(_))
                });
            }
        }
    }

    /// The time that records are of.
    pub fn now(&self) -> Time {
        self.common.now()
    }

    /// Stops the clients and writes every key once more: what it has by then is acknowledged.
    pub fn write_last(&mut self) {
        self.stop();
        let mut on = Client::to(&self.common.doors[0]);
        for number in 0..KEYS {
            let mut turn = 0;
            until("every key can be written at last", || {
                turn += 1;
                let value = self.common.value(&format!("last-{number}-{turn}"));
                let put = Operation::put(key(number), value);
                let completion = self.common.ask(&mut on, ClientId(CLIENTS), put);
                completion.expect("the host answers") == Completion::Written
            });
        }
    }

    /// Stops the clients, reads every key on every host given, and hands over the history.
    pub fn finish(mut self, hosts: &[usize]) -> Recorded {
        self.stop();
        let healed = self.common.now();
        self.read_all(hosts);
        let records = std::mem::take(&mut *self.common.records.lock().expect("all have ended"));
        Recorded { records, healed, hosts: hosts.len() }
    }

    fn stop(&mut self) {
        self.common.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "a client panicked");
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A history before it is judged.
#[derive(Clone)]
pub struct Recorded {
    pub records: Vec<Record>,
    pub healed: Time,
    hosts: usize,
}

impl Recorded {
    /// The history without a write whose value was there in the end: a lie that must be noticed.
    pub fn without_a_final_write(&self) -> Recorded {
        let is_final = |value: &Completion| matches!(value, Completion::Value(Some(_)));
        let last = self.records.iter().rfind(|record| is_final(&record.completion));
        let last = last.expect("a key has a value in the end");
        let mut without = self.clone();
        without.records.retain(|record| match (&record.operation, &last.completion) {
            (Operation::Put { value, .. }, Completion::Value(Some(lost))) => value != lost,
            _ => true,
        });
        assert_eq!(without.records.len() + 1, self.records.len(), "values are unique");
        without
    }

    /// What the judges say.
    pub fn judged(&self) -> Report {
        let mut recorder = Recorder::new();
        recorder.heal(self.healed);
        for record in &self.records {
            let id = recorder.invoke(record.client, record.operation.clone(), record.invoked);
            recorder.complete(id, record.completion.clone(), record.completed);
        }
        judge_all(recorder.finish(), STEPS_MAX_DEFAULT)
    }

    /// Demands that every promise was kept, and that there was enough to break one.
    pub fn must_hold(&self, answered_min: usize) {
        let report = self.judged();
        println!("{report}");
        assert!(report.verdict().is_holding(), "{report}");
        assert!(report.durable.is_some(), "the durability was judged: {report}");
        assert!(report.counts.answered >= answered_min, "too little happened: {report}");
        assert_eq!(report.counts.keys as u64, KEYS, "{report}");
        let writes = |record: &&Record| {
            matches!(record.completion, Completion::Written | Completion::Deleted { .. })
        };
        let written = self.records.iter().filter(writes).count();
        assert!(written >= answered_min / 4, "{written} writes: {report}");
        let finals = |record: &&Record| {
            record.invoked > self.healed && matches!(record.completion, Completion::Value(_))
        };
        let finals = self.records.iter().filter(finals).count();
        assert!(finals >= self.hosts * KEYS as usize, "every key was read in the end");
    }
}
