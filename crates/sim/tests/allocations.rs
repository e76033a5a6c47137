//! How often a client's operation allocates, over all hosts that take part: counted, not timed.

use bytes::{Bytes, BytesMut};
use quorate_doors::resp::{Session, Shared};
use quorate_doors::{
    Clock, Connected, Identity, NoFacts, Opening, Requests, Serving, Session as _,
};
use quorate_kernel::engine::Served;
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start, Ticket};
use quorate_kernel::keyspace::{Keyspace, Settings as Words};
use quorate_kernel::lane::LaneSpec;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::{Recovery, Request};
use quorate_kernel::ring::Ring;
use quorate_kernel::rope::Rope;
use quorate_kernel::storage::{Batch, Durability, Durable, Nothing};
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::view::{Range, View, ViewId};
use quorate_kernel::watch::Watch;
use quorate_kernel::wire::{Frame, frame_length};
use quorate_node::host::Host;
use quorate_node::node::Node;
use quorate_node::pump::{Input, turn};
use quorate_protocols::engines;
use quorate_protocols::linearizable::{self, Mode, Pace};
use quorate_protocols::order::Order;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

/// Counts what this thread allocates.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: it does what the system's allocator does, with the same arguments; counting allocates
// nothing, since the cell is initialized by a constant and needs no destructor.
#[allow(unsafe_code, reason = "an allocator is unsafe to write, and nothing else counts")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller keeps this function's contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const LANE: LaneId = LaneId::KEYSPACES;
const HOSTS: usize = 3;
const OPERATIONS: u64 = 2_000;
const VALUE_BYTES: usize = 1024;

/// What leaves one host.
#[derive(Default)]
struct Outside {
    links: [Rope; HOSTS],
    answers: Vec<(Ticket, Outcome)>,
    /// How far a log would have come that syncs at once.
    synced: Option<Lsn>,
}

impl Host for Outside {
    fn transmit(&mut self, frame: &Frame) {
        frame.write(&mut self.links[frame.target.node.0 as usize - 1]);
    }

    fn answer(&mut self, ticket: Ticket, outcome: Outcome) {
        self.answers.push((ticket, outcome));
    }

    fn commit(&mut self, batch: Batch) {
        assert!(batch.must_sync, "it is protocol state: data in memory is not logged");
        self.synced = Some(batch.lsn);
    }

    fn ring(&mut self, _ring: &Arc<Ring>) {}
}

/// What a session has asked for.
#[derive(Default)]
struct Started(Vec<Input>);

impl Requests for Started {
    fn start(&mut self, number: u32, lane: LaneId, operation: Operation, _: Option<Span>) {
        let request = Request { operation, deadline: Time(u64::MAX) };
        self.0.push(Input::Request { lane, ticket: Ticket(u64::from(number)), request });
    }

    fn watch(&mut self, _: u32, _: LaneId, _: Watch) {}
    fn unwatch(&mut self, _: u32) {}
}

/// A cluster of three whose connections are buffers, and a client of its first host.
struct World {
    nodes: Vec<Node>,
    outsides: [Outside; HOSTS],
    inputs: [Vec<Input>; HOSTS],
    reads: [BytesMut; HOSTS],
    session: Session,
    started: Started,
    input: BytesMut,
    clock: Clock,
}

fn node(number: u64, view: &View) -> Node {
    let settings = linearizable::Settings {
        first_views: vec![view.clone()],
        replicas: HOSTS,
        order: Order::Hash,
        mode: Mode::Atomic,
        durability: Durability::Memory,
        value_bytes_max: 1 << 20,
        digest_reads: true,
        ask_majority_first: true,
        transfer_bytes_per_second: 0,
        pace: Pace::default(),
    };
    let spec = LaneSpec {
        lane: LANE,
        durability: Durability::Memory,
        recovery: Recovery::Intact,
        process: linearizable::lane(settings),
    };
    let me = Incarnation { node: NodeId(number), start: Start(1) };
    Node::new(me, number, Lsn(0), Box::new(Nothing), vec![spec])
}

fn session() -> Session {
    let engine = &linearizable::ENGINE;
    let words = engine.complete(&Words::new()).expect("defaults");
    let keyspace = Arc::new(Keyspace::new("default", LANE, engine.name, words, 1));
    let served = Served::new(keyspace, engine, engines::ENGINES);
    let opening = Opening {
        identity: Identity::default(),
        facts: Box::new(NoFacts),
        port: 6379,
        clients_max: 1,
    };
    let serving = Arc::new(Serving::new(vec![Some(served)], true));
    Session::new(Connected::default(), Shared::new(opening), serving)
}

impl World {
    fn new() -> World {
        let members = (1..=HOSTS as u64).map(NodeId).collect();
        let view = View::new(ViewId::default(), Range::ALL, members);
        let mut world = World {
            nodes: (1..=HOSTS as u64).map(|number| node(number, &view)).collect(),
            outsides: Default::default(),
            inputs: Default::default(),
            reads: Default::default(),
            session: session(),
            started: Started::default(),
            input: BytesMut::new(),
            clock: Clock::default(),
        };
        for (node, outside) in world.nodes.iter_mut().zip(&mut world.outsides) {
            node.start(outside);
            node.end(outside).expect("no disk");
        }
        world
    }

    /// Carries what waits on each connection, as links do.
    fn carry(&mut self) {
        for from in 0..HOSTS {
            for to in 0..HOSTS {
                let link = &mut self.outsides[from].links[to];
                let read = &mut self.reads[to];
                if read.capacity() - read.len() < 16 * 1024 {
                    read.reserve(256 * 1024);
                }
                link.take(usize::MAX, read);
                while let Some(length) =
                    frame_length(read).expect("frames").filter(|_| !read.is_empty())
                {
                    let frame = read.split_to(length).freeze();
                    self.inputs[to].push(Input::Frame(frame));
                }
            }
        }
    }

    /// Runs until nothing is left to do.
    fn run(&mut self) {
        loop {
            self.inputs[0].append(&mut self.started.0);
            for (outside, inputs) in self.outsides.iter_mut().zip(&mut self.inputs) {
                let durable = outside.synced.take();
                let durable = durable.map(|synced| Durable { written: synced, synced });
                inputs.extend(durable.map(Input::Durable));
            }
            if self.inputs.iter().all(Vec::is_empty) {
                return;
            }
            for at in 0..HOSTS {
                let (inputs, outside) = (&mut self.inputs[at], &mut self.outsides[at]);
                let now = self.clock.now;
                turn(&mut self.nodes[at], now, WallTime(0), inputs, outside).expect("no disk");
            }
            self.carry();
            let mut answers = std::mem::take(&mut self.outsides[0].answers);
            for (ticket, outcome) in answers.drain(..) {
                let number = u32::try_from(ticket.0).expect("a session's number");
                self.session.complete(number, outcome, self.clock, &mut self.started);
            }
            self.outsides[0].answers = answers;
        }
    }

    /// A client sends a command; how many bytes it gets back.
    fn ask(&mut self, command: &[u8]) -> usize {
        self.clock.now.0 += 100_000;
        if self.input.capacity() - self.input.len() < 8 * 1024 {
            self.input.reserve(64 * 1024);
        }
        self.input.extend_from_slice(command);
        self.session.feed(&mut self.input, self.clock, &mut self.started);
        self.run();
        let output = self.session.output();
        let length = output.len();
        output.advance(length);
        length
    }
}

fn command(words: &[&[u8]]) -> Bytes {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.into()
}

/// How often one of many such commands allocates on average, in hundredths.
fn allocations(world: &mut World, command: &[u8], reply_bytes: usize) -> u64 {
    let before = COUNT.get();
    for _ in 0..OPERATIONS {
        assert_eq!(world.ask(command), reply_bytes);
    }
    (COUNT.get() - before) * 100 / OPERATIONS
}

#[test]
fn operations_allocate_little() {
    let mut world = World::new();
    let value = [b'v'; VALUE_BYTES];
    let (key, set_bytes, get_bytes) = (&b"key:000000012345"[..], 5, VALUE_BYTES + 9);
    let (set, get) = (command(&[b"SET", key, &value]), command(&[b"GET", key]));
    // What is kept for long gets its room.
    allocations(&mut world, &set, set_bytes);
    allocations(&mut world, &get, get_bytes);
    let (set, get) =
        (allocations(&mut world, &set, set_bytes), allocations(&mut world, &get, get_bytes));
    assert!(set <= 500, "a SET allocates {set} times in 100");
    assert!(get <= 300, "a GET allocates {get} times in 100");
}
