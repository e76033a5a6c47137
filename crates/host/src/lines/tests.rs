//! Two doors on one core thread, over real sockets.

use super::DOOR;
use crate::DoorOptions;
use crate::doors::admission::OpenDoor;
use crate::doors::clients::Clients;
use crate::keyspaces::Table;
use crate::metrics::{RejectReason, Shared, Stage};
use crate::pending::{PendingRequests, Waiter};
use crate::proof::Encrypt;
use crate::proof::Secrets;
use crate::ring::founding::ring_hosts;
use crate::shutdown::Shutdown;
use crate::token::{CLIENT, connection};
use crate::{engines, samples};
use mio::{Events, Poll};
use quorate_doors::{Clock, Door, resp};
use quorate_kernel::ids::{ClusterId, LaneId, NodeId, Start};
use quorate_kernel::keyspace::NewKeyspace;
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::{Span, Time};
use quorate_node::pump::Input;
use quorate_store::{Directory, HostRecord, Identity, Secret};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a client waits for what must come.
const PATIENCE: Duration = Duration::from_secs(120);
const ANYWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn options(door: &'static Door, clients_max: usize, clients_bytes_max: usize) -> DoorOptions {
    DoorOptions { door, bind: ANYWHERE, clients_max, clients_bytes_max }
}

fn shared(cluster: ClusterId, node: NodeId, start: Start) -> Arc<Shared> {
    Arc::new(Shared::new(cluster, (1, node, start), Vec::new()))
}

/// A client that sends lines and reads lines.
struct Person(BufReader<TcpStream>);

impl Person {
    fn at(door: SocketAddr) -> Person {
        let stream = TcpStream::connect(door).expect("the door is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket has a timeout");
        Person(BufReader::new(stream))
    }

    fn say(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).expect("the host reads");
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the host answers");
        line
    }

    fn ask(&mut self, line: &str) -> String {
        self.say(&format!("{line}\n"));
        self.hear().trim_end().to_owned()
    }

    /// All that the host still says before it closes.
    fn rest(mut self) -> String {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).expect("the host closes");
        rest
    }
}

/// A cluster of one host with one keyspace, in memory.
fn born() -> Identity {
    let host = HostRecord {
        host: 1,
        node: NodeId(1),
        address: ANYWHERE.to_string(),
        zone: String::new(),
        tokens: vec![u64::MAX],
    };
    let memory = [("durability", "memory")];
    let keyspace = samples::served("default", engines::usual(), &memory, LaneId::KEYSPACES);
    let keyspace = keyspace.keyspace();
    let (name, engine) = (keyspace.name.clone(), keyspace.engine.to_string());
    let settings = keyspace.settings.clone();
    Identity {
        cluster: ClusterId(1),
        node: host.node,
        host: 1,
        is_founder: true,
        secret: Secret([7; 32]),
        context_key: None,
        hosts: vec![host],
        keyspaces: vec![NewKeyspace { name, engine, settings }],
    }
}

/// A cluster of one host in this process.
struct Running {
    _place: tempfile::TempDir,
    shared: Arc<Shared>,
    shutdown: Arc<Shutdown>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(doors: Vec<DoorOptions>) -> Running {
        let place = tempfile::tempdir().expect("a temporary directory");
        let data = place.path().join("host-1");
        let identity = born();
        quorate_store::create(&data, &identity).expect("an empty place");
        let directory = Directory::open(&data, None).expect("it was just made");
        let shared = shared(identity.cluster, identity.node, directory.start());
        let shutdown = Arc::new(Shutdown::default());
        let (_, calls) = crate::calls();
        let options = crate::Options {
            doors,
            beside: Vec::new(),
            cluster: ANYWHERE,
            hosts: ring_hosts(&identity.hosts),
            secrets: Arc::new(Secrets::of(&data, &identity).expect("it was just written")),
            encrypt: Encrypt::Auto,
            calls,
            balance: None,
            roll: None,
            transfer_rate: 0,
            request_timeout: PATIENCE,
            cache_bytes_max: 1 << 20,
            store: quorate_store::Options::default(),
            shared: Arc::clone(&shared),
            shutdown: Arc::clone(&shutdown),
            directory,
        };
        let run = move || crate::run(options).expect("the host runs until it is told to stop");
        let thread = Some(std::thread::spawn(run));
        let running = Running { _place: place, shared, shutdown, thread };
        while !running.is_ready() {
            assert!(running.shared.began.elapsed() < PATIENCE, "a host of one is ready soon");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        running
    }

    fn is_ready(&self) -> bool {
        let (shared, keyspaces) = (&self.shared, self.shared.keyspaces());
        shared.stage() == Stage::Serving
            && !keyspaces.is_empty()
            && keyspaces.iter().all(|keyspace| keyspace.is_ready())
    }

    fn door(&self, number: usize) -> SocketAddr {
        self.shared.doors().expect("a ready host has open doors").clients[number].address
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.request();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}

#[test]
fn two_doors_show_one_keyspace_and_each_keeps_its_own_bounds() {
    let (redis, lines) = (options(&resp::DOOR, 100, 1 << 30), options(&DOOR, 2, 100_000));
    let host = Running::start(vec![redis, lines]);
    let (mut redis, mut one) = (Person::at(host.door(0)), Person::at(host.door(1)));
    assert_eq!(one.ask("GET k"), "-");
    assert_eq!(one.ask("PUT k a value"), "OK");
    assert_eq!(redis.ask("STRLEN k"), ":7");
    assert_eq!(redis.ask("SET k other"), "+OK");
    assert_eq!(one.ask("WITHIN 60000"), "OK");
    assert_eq!(one.ask("GET k"), "= other");
    assert_eq!(one.ask("PUT k"), "ERROR expected GET key, PUT key value or WITHIN ms");

    // Its own number of clients: the third is told so, and the other door lets in.
    let mut two = Person::at(host.door(1));
    assert_eq!(two.ask("GET k"), "= other");
    assert_eq!(Person::at(host.door(1)).rest(), "ERROR max number of clients reached\n");
    assert_eq!(Person::at(host.door(0)).ask("PING"), "+PONG");
    let doors = host.shared.doors().expect("they are open").clients;
    assert_eq!((doors[1].name, doors[1].clients.get(), doors[1].accepted.get()), ("lines", 2, 2));

    // Its own memory: a line for which there is no room is refused before it was all read.
    two.say(&"x".repeat(90_000));
    let refused = two.rest();
    assert!(refused.contains("bytes that lines.memory_max allows"), "{refused}");
    assert_eq!(redis.ask(&format!("SET k {}", "x".repeat(60_000))), "+OK");
    assert_eq!(host.shared.rejected(RejectReason::Memory), 1);
    assert_eq!(one.ask("GET k").len(), 2 + 60_000);
}

/// The connections of one door, with a clock of the test's own and no node behind them.
struct Bare {
    poll: Poll,
    clients: Clients,
    pending: PendingRequests,
    now: Time,
    door: SocketAddr,
}

impl Bare {
    fn new() -> Bare {
        let poll = Poll::new().expect("a poller");
        let shared = shared(ClusterId(1), NodeId(1), Start(1));
        let me = quorate_doors::Identity::default();
        let door = OpenDoor::open(&poll, 0, &options(&DOOR, 10, 0), &me, &shared);
        let doors = vec![door.expect("a free port")];
        let door = doors[0].cells.address;
        let mut clients = Clients::new(doors, shared, 1);
        let keyspace = samples::served("default", "linearizable", &[], LaneId::KEYSPACES);
        clients.set_keyspaces(&Table { served: vec![Arc::new(keyspace)], ..Table::default() });
        let pending = PendingRequests::new(Instant::now(), Span::secs(5));
        Bare { poll, clients, pending, now: Time(0), door }
    }

    /// Lets the loop turn, with a listener or a client that has something.
    fn turn(&mut self) {
        self.take_events();
        self.read();
    }

    /// Takes what the poller says, and reads nothing yet.
    fn take_events(&mut self) {
        let mut events = Events::with_capacity(8);
        let has_more = self.clients.has_readable();
        let patience = if has_more { Duration::ZERO } else { PATIENCE };
        self.poll.poll(&mut events, Some(patience)).expect("it polls");
        assert!(has_more || !events.is_empty(), "somebody has something");
        for event in &events {
            match connection(event.token()) {
                Some((CLIENT, key)) => self.clients.on_event(key, event),
                _ => self.clients.accept(0, self.now, self.poll.registry()),
            }
        }
    }

    /// Reads from some clients, and writes.
    fn read(&mut self) {
        let clock = Clock { now: self.now, ..Clock::default() };
        self.clients.read(clock, &mut self.pending);
        self.clients.flush(clock, &mut self.pending);
    }

    /// The request that was handed over last ends so, and what is to be told of it is written.
    fn complete(&mut self, outcome: Outcome) {
        let clock = Clock { now: self.now, ..Clock::default() };
        let Some(Input::Request { ticket, .. }) = self.pending.inputs.pop() else {
            panic!("a request was started")
        };
        let waiter = self.pending.answered(ticket, &outcome, self.now);
        let Some(Waiter::Session(asked)) = waiter else { panic!("a session waits") };
        self.clients.complete(asked, outcome, clock, &mut self.pending);
        self.clients.flush(clock, &mut self.pending);
    }

    /// How many clients are connected.
    fn there(&self) -> u64 {
        self.clients.doors()[0].clients.get()
    }

    /// What the door's clients hold.
    fn held(&self) -> u64 {
        self.clients.doors()[0].clients_bytes.get()
    }
}

#[test]
fn a_session_chooses_how_long_a_request_may_take() {
    let mut bare = Bare::new();
    let (mut one, mut other) = (Person::at(bare.door), Person::at(bare.door));
    bare.now = Time(0) + Span::secs(9);
    one.say("WITHIN 70\nGET k\n");
    other.say("GET k\n");
    while bare.pending.inputs.len() < 2 {
        bare.turn();
    }
    let mut deadlines: Vec<Time> = Vec::new();
    for input in &bare.pending.inputs {
        let Input::Request { request, .. } = input else { panic!("a request was started") };
        deadlines.push(request.deadline);
    }
    deadlines.sort();
    assert_eq!(deadlines, [bare.now + Span::millis(70), bare.now + Span::secs(5)]);
}

#[test]
fn half_a_request_is_ended_after_a_while_at_any_door() {
    let mut bare = Bare::new();
    let mut one = Person::at(bare.door);
    one.say("WITHIN 70\nGET");
    while bare.held() == 0 {
        bare.turn();
    }
    assert_eq!(one.hear(), "OK\n");
    bare.clients.maintain(Time(0) + Span::secs(29), &mut bare.pending);
    assert!(!bare.clients.has_dirty(), "it may still go on");
    bare.now = Time(0) + Span::secs(31);
    bare.clients.maintain(bare.now, &mut bare.pending);
    let clock = Clock { now: bare.now, ..Clock::default() };
    bare.clients.flush(clock, &mut bare.pending);
    let said = "ERROR a command was begun and nothing or too little of it came for 30 s; nothing \
                of it was executed\n";
    assert_eq!(one.rest(), said);
}

/// Clients are looked after however many of them wait to be read: nobody is searched for there.
#[test]
fn who_waits_to_be_read_waits_once() {
    const LOOKS: usize = 100;
    let mut bare = Bare::new();
    let mut one = Person::at(bare.door);
    while bare.there() < 1 {
        bare.turn();
    }
    one.say("GET k\n");
    while !bare.clients.has_readable() {
        bare.take_events();
    }
    (0..LOOKS).for_each(|_| bare.clients.maintain(bare.now, &mut bare.pending));
    bare.read();
    assert_eq!(bare.pending.inputs.len(), 1, "it was read");
    assert!(!bare.clients.has_readable(), "nobody waits");
}

/// More was sent than was read when the host stops: closed with that unread, the connection would
/// be reset, and what was answered lost.
#[test]
fn a_host_that_stops_reads_to_the_end_what_it_does_not_answer() {
    let mut bare = Bare::new();
    let (mut one, quiet) = (Person::at(bare.door), Person::at(bare.door));
    while bare.there() < 2 {
        bare.turn();
    }
    bare.now = Time(0) + Span::secs(9);
    one.say(&"GET k\n".repeat(20_000));
    while bare.pending.inputs.is_empty() {
        bare.turn();
    }
    bare.clients.finish();
    bare.complete(Outcome::written());
    assert_eq!(bare.there(), 1, "nothing of the quiet one can be lost");
    assert_eq!((one.hear(), one.rest(), quiet.rest()), ("OK\n".into(), "".into(), "".into()));
    while !bare.clients.is_empty() {
        bare.turn();
    }
}

#[test]
fn a_client_that_does_not_close_keeps_a_host_that_stops_for_a_moment() {
    let mut bare = Bare::new();
    let mut one = Person::at(bare.door);
    one.say("GET k\n");
    while bare.pending.inputs.is_empty() {
        bare.turn();
    }
    bare.clients.finish();
    bare.complete(Outcome::written());
    assert_eq!(one.hear(), "OK\n");
    bare.clients.maintain(bare.now + Span::millis(900), &mut bare.pending);
    assert!(!bare.clients.is_empty());
    bare.clients.maintain(bare.now + Span::millis(1100), &mut bare.pending);
    assert!(bare.clients.is_empty());
}
