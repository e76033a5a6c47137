//! Two doors on one core thread, over real sockets.

use super::DOOR;
use crate::admin::health;
use crate::config::values::Encrypt;
use crate::host::clients::Clients;
use crate::host::doors::OpenDoor;
use crate::host::keyspaces::{Served, Table};
use crate::host::token::{CLIENT, connection};
use crate::host::{self, DoorOptions};
use crate::metrics::{RejectReason, Shared};
use crate::proof::Secrets;
use crate::provision::{self, Doors, Plan, keyspace};
use crate::ring::founding::ring_hosts;
use crate::shutdown::Shutdown;
use mio::{Events, Poll};
use quorate_doors::{Clock, Door, Identity, resp};
use quorate_kernel::ids::{ClusterId, LaneId, NodeId, Start};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::{Span, Time};
use quorate_node::pump::Input;
use quorate_store::Directory;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

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
        let plan = Plan {
            hosts: vec![Doors::on_this_machine(7400, 1).expect("ports in range")],
            zones: Vec::new(),
            tokens: 1,
            keyspaces: vec![keyspace::standard()],
            durability: Durability::Memory,
        };
        let identity = provision::write(&plan, place.path()).expect("an empty place");
        let data = provision::host_directory(place.path(), 1);
        let directory = Directory::open(&data, None).expect("it was just made");
        let shared = shared(identity.cluster, identity.node, directory.start());
        let shutdown = Arc::new(Shutdown::default());
        let ((_, questions), (_, calls)) = (host::questions(), host::calls());
        let options = host::Options {
            is_moved: false,
            doors,
            cluster: ANYWHERE,
            hosts: ring_hosts(&identity.hosts),
            secrets: Arc::new(Secrets::of(&data, &identity).expect("it was just written")),
            encrypt: Encrypt::Auto,
            questions,
            calls,
            balance: None,
            transfer_rate: 0,
            request_timeout: PATIENCE,
            store: quorate_store::Options::default(),
            shared: Arc::clone(&shared),
            shutdown: Arc::clone(&shutdown),
            directory,
        };
        let run = move || host::run(options).expect("the host runs until it is told to stop");
        let thread = Some(std::thread::spawn(run));
        let running = Running { _place: place, shared, shutdown, thread };
        while !health::is_ready(&running.shared) {
            assert!(running.shared.began.elapsed() < PATIENCE, "a host of one is ready soon");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        running
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
    inputs: Vec<Input>,
    now: Time,
    door: SocketAddr,
}

impl Bare {
    fn new() -> Bare {
        let poll = Poll::new().expect("a poller");
        let shared = shared(ClusterId(1), NodeId(1), Start(1));
        let me = Identity::default();
        let door = OpenDoor::open(&poll, 0, &options(&DOOR, 10, 0), &me, &shared);
        let doors = vec![door.expect("a free port")];
        let door = doors[0].cells.address;
        let mut clients = Clients::new(doors, shared, Duration::from_secs(5), 1);
        let keyspace = Served::sample("default", "linearizable", &[], LaneId::KEYSPACES);
        clients.set_keyspaces(&Table { served: vec![Arc::new(keyspace)], ..Table::default() });
        Bare { poll, clients, inputs: Vec::new(), now: Time(0), door }
    }

    /// Lets the loop turn, with a listener or a client that has something.
    fn turn(&mut self) {
        let clock = Clock { now: self.now, ..Clock::default() };
        let mut events = Events::with_capacity(8);
        self.poll.poll(&mut events, Some(PATIENCE)).expect("it polls");
        assert!(!events.is_empty(), "somebody has something");
        for event in &events {
            match connection(event.token()) {
                Some((CLIENT, key)) => self.clients.on_event(key, event),
                _ => self.clients.accept(0, self.now, self.poll.registry()),
            }
        }
        self.clients.read(clock, &mut self.inputs);
        self.clients.flush(clock, &mut self.inputs);
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
    while bare.inputs.len() < 2 {
        bare.turn();
    }
    let mut deadlines: Vec<Time> = Vec::new();
    for input in &bare.inputs {
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
    bare.clients.tend(Time(0) + Span::secs(29));
    assert!(!bare.clients.has_dirty(), "it may still go on");
    bare.now = Time(0) + Span::secs(31);
    bare.clients.tend(bare.now);
    let clock = Clock { now: bare.now, ..Clock::default() };
    bare.clients.flush(clock, &mut bare.inputs);
    let said = "ERROR a command was begun and no more of it came for 30 s; nothing of it was \
                executed\n";
    assert_eq!(one.rest(), said);
}
