//! Golden scripts: each shows what gateways and primaries say to each other in one part of the
//! protocol, on hosts whose links and disks take no time.
//!
//! | command | what it does |
//! |---|---|
//! | `hosts N` | so many hosts, all of them founders; runs until one leads |
//! | `open H` | a client wants a session at host H; clients are numbered from 1 |
//! | `again C H` | client C goes on with its session at host H |
//! | `ask C WORDS` | client C asks: `create`, `get`, `children`, `set`, `delete`, `close`, `ping` ... |
//! | `cut H` | all that host H sends or would get is lost from now on |
//! | `heal` | nothing is lost any more |
//! | `run MS` | time passes |

use crate::coordination::message::{Message, News};
use crate::coordination::state::{Coordination, Settings};
use crate::coordination::timer::Timer;
use crate::testing::compare_scripts;
use crate::testing::disk::Disk;
use crate::vsr::Kept;
use bytes::Bytes;
use core::fmt::Write;
use quorate_kernel::effects::{Effect, Effects, Recipients};
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start, Ticket};
use quorate_kernel::news::News as Heard;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::{Context, Process, Recovery, Request, Timer as _};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::tree::{
    Acl, Act, Ask, Connect, Item, Kind, Password, SessionEvent, SessionId, Zxid,
};
use quorate_kernel::watch::{Event, Watch};
use std::borrow::ToOwned;
use std::boxed::Box;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::format;
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

struct Host {
    process: Coordination,
    disk: Disk,
    timers: BTreeMap<u32, Time>,
    rng: Rng,
}

#[derive(Default)]
struct Client {
    at: usize,
    watch: u64,
    session: Option<(SessionId, Password)>,
}

struct World {
    hosts: Vec<Host>,
    now: Time,
    messages: VecDeque<(usize, usize, Message)>,
    cut: BTreeSet<usize>,
    clients: Vec<Client>,
    tickets: u64,
    asked: BTreeMap<u64, usize>,
    /// Who was last heard to serve.
    serves: String,
    out: String,
}

fn incarnation(at: usize) -> Incarnation {
    Incarnation { node: NodeId(at as u64 + 1), start: Start(1) }
}

impl World {
    fn new(hosts: usize) -> World {
        let founders: Arc<[NodeId]> = (0..hosts).map(|at| incarnation(at).node).collect();
        let settings = Settings {
            founders: Vec::from([founders]),
            replicas: hosts,
            failed: Span::secs(60),
            durability: Durability::Sync,
            value_bytes_max: 1000,
            timeouts: (4000, 40_000),
            session_reads: false,
            kept: Kept { entries: 100, bytes: 10_000 },
            key: [7; 32],
        };
        let host = |at: usize| Host {
            process: Coordination::new(settings.clone()),
            disk: Disk::new(false, false),
            timers: BTreeMap::new(),
            rng: Rng::new(at as u64),
        };
        let mut world = World {
            hosts: (0..hosts).map(host).collect(),
            now: Time(1_000_000_000),
            messages: VecDeque::new(),
            cut: BTreeSet::new(),
            clients: Vec::new(),
            tickets: 0,
            asked: BTreeMap::new(),
            serves: String::new(),
            out: String::new(),
        };
        for at in 0..hosts {
            world.turn(at, |process, cx| process.start(Recovery::Intact, cx));
        }
        world.run(Span::secs(1));
        world.out.clear();
        world
    }

    fn turn(
        &mut self,
        at: usize,
        input: impl FnOnce(&mut Coordination, &mut Context<'_, Coordination>),
    ) {
        self.step(at, input);
        self.step(at, |process, cx| process.on_news(Heard::TurnEnd, cx));
    }

    fn step(
        &mut self,
        at: usize,
        input: impl FnOnce(&mut Coordination, &mut Context<'_, Coordination>),
    ) {
        let now = self.now;
        let Host { process, disk, rng, .. } = &mut self.hosts[at];
        let wall = WallTime(i64::try_from(now.0 / 1_000_000).expect("it is early"));
        let (me, lane) = (incarnation(at), LaneId(17));
        let mut fx = Effects::default();
        input(process, &mut Context { me, lane, now, wall, rng, table: disk, fx: &mut fx });
        process.check();
        let effects: Vec<Effect<Message, Timer>> = fx.drain().collect();
        for effect in effects {
            match effect {
                Effect::Write { class, key, value } => {
                    self.hosts[at].disk.write(class, &key, value.as_ref());
                }
                Effect::Arm { timer, at: due } => {
                    self.hosts[at].timers.insert(timer.code(), due);
                }
                Effect::Disarm { timer } => _ = self.hosts[at].timers.remove(&timer.code()),
                Effect::Send { to, message, .. } => {
                    let nodes: Vec<NodeId> = match &to {
                        Recipients::One(one) => Vec::from([one.node]),
                        Recipients::Group(nodes) => nodes.to_vec(),
                    };
                    for node in nodes {
                        let to = node.0 as usize - 1;
                        self.show_message((at, to), &message);
                        let is_lost = self.cut.contains(&at) || self.cut.contains(&to);
                        if at == to || !is_lost {
                            self.messages.push_back((at, to, message.clone()));
                        }
                    }
                }
                Effect::Answer { ticket, outcome, .. } => {
                    let client = self.asked.get(&ticket.0).copied().expect("somebody asked");
                    show_outcome(&mut self.out, client, &outcome);
                    if let Outcome::More(events) = outcome {
                        for event in events {
                            if let Event::Session(SessionEvent::Open {
                                session, password, ..
                            }) = event
                            {
                                self.clients[client - 1].session = Some((session, password));
                            }
                        }
                    }
                }
                Effect::Announce(_) => {}
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((from, to, message)) = self.messages.pop_front() {
            self.turn(to, |process, cx| process.on_message(incarnation(from), message, cx));
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        self.deliver();
        loop {
            let timers = self.hosts.iter().enumerate();
            let due = timers.filter_map(|(at, host)| {
                let (code, due) = host.timers.iter().min_by_key(|(_, due)| **due)?;
                Some((*due, at, *code))
            });
            let Some((due, at, code)) = due.min().filter(|(due, ..)| *due <= end) else { break };
            self.now = self.now.max(due);
            self.hosts[at].timers.remove(&code);
            let timer = Timer::from_code(code).expect("it was armed");
            self.turn(at, |process, cx| process.on_timer(timer, cx));
            self.deliver();
        }
        self.now = end;
    }

    fn connect(&mut self, client: usize, at: usize) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.asked.insert(ticket.0, client);
        let known = &mut self.clients[client - 1];
        (known.at, known.watch) = (at, ticket.0);
        let session = known.session;
        let connect = Connect { session, timeout_ms: 6000, seen: Zxid(0), peer: None };
        self.turn(at, |process, cx| process.on_watch(ticket, Watch::Session(connect), cx));
        self.deliver();
    }

    fn ask(&mut self, client: usize, act: Act) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.asked.insert(ticket.0, client);
        let known = &self.clients[client - 1];
        let session = known.session.map(|(session, _)| session);
        let operation = Operation::Tree(Box::new(Ask { session, opening: None, act }));
        let request = Request { operation, deadline: self.now + Span::secs(5) };
        let at = known.at;
        self.turn(at, |process, cx| process.on_request(ticket, request, cx));
        self.deliver();
    }
}

impl World {
    fn show_message(&mut self, (from, to): (usize, usize), message: &Message) {
        let text = match message {
            Message::Ask(ask) if ask.commands.is_empty() && ask.questions.is_empty() => return,
            Message::Ask(ask) => {
                let commands = ask.commands.iter().enumerate();
                let commands = commands.map(|(at, it)| format!("{} {it:?}", ask.first + at as u64));
                let questions = ask.questions.iter();
                let questions = questions
                    .map(|it| format!("q{} after {} {:?}", it.number, it.after, it.question));
                let all: Vec<String> = commands.chain(questions).collect();
                format!(
                    "turn {} seen {} acked {}: {}",
                    ask.turn,
                    ask.seen,
                    ask.acked,
                    all.join("; ")
                )
            }
            Message::Told(told) if told.news.is_empty() => return,
            Message::Told(told) => {
                let news = told.news.iter().map(|news| match news {
                    News::Change(number, change) => format!("change {number} {change:?}"),
                    News::Done(number, answer) => format!("done {number} {answer:?}"),
                    News::Answer(number, answer) => format!("answer q{number} {answer:?}"),
                });
                let all: Vec<String> = news.collect();
                format!(
                    "turn {} number {} upto {}: {}",
                    told.turn,
                    told.number,
                    told.upto,
                    all.join("; ")
                )
            }
            Message::Leads(leads) if leads.serves => {
                let text = format!("view {:?} serves", leads.view);
                if self.serves == text {
                    return;
                }
                self.serves.clone_from(&text);
                text
            }
            Message::WhoLeads { .. } | Message::Stand { .. } | Message::Stands { .. } => {
                format!("{message:?}")
            }
            Message::Log(_) | Message::Leads(_) | Message::Applied { .. } => return,
        };
        let _ = writeln!(self.out, "> {} -> {} {}: {text}", from + 1, to + 1, message.name());
    }
}

fn show_outcome(out: &mut String, client: usize, outcome: &Outcome) {
    let text = match outcome {
        Outcome::Tree(reply) => format!("{reply:?}"),
        Outcome::More(events) => {
            let hidden = |event: &Event| match event {
                Event::Session(SessionEvent::Open { session, timeout_ms, .. }) => {
                    format!("{session:?} is open for {timeout_ms} ms")
                }
                Event::Session(event) => format!("{event:?}"),
                other => format!("{other:?}"),
            };
            events.iter().map(hidden).collect::<Vec<String>>().join("; ")
        }
        other => format!("{other:?}"),
    };
    let _ = writeln!(out, "> client {client}: {text}");
}

fn act(words: &[&str]) -> Act {
    let watch = words.last() == Some(&"watch");
    let path = words.get(1).copied().unwrap_or_default().to_owned();
    let data = || Bytes::from(words.get(2).copied().unwrap_or_default().to_owned());
    let create = |kind, sequential| {
        let (path, data, acl) = (path.clone(), Some(data()), Acl::open());
        Act::One(Item::Create { path, data, acl, kind, sequential })
    };
    match words[0] {
        "create" => create(Kind::Persistent, false),
        "ephemeral" => create(Kind::Ephemeral, false),
        "sequential" => create(Kind::Persistent, true),
        "set" => Act::One(Item::Set { path: path.clone(), data: Some(data()), version: None }),
        "delete" => Act::One(Item::Delete { path, version: None }),
        "get" => Act::One(Item::Get { path, watch }),
        "children" => Act::One(Item::Children { path, watch }),
        "follow" => Act::Follow { path, recursive: true },
        "sync" => Act::Sync { path },
        "ping" => Act::Ping,
        "close" => Act::Close,
        other => panic!("nobody asks `{other}`"),
    }
}

fn run(script: &str) -> String {
    let mut world: Option<World> = None;
    let mut shown = String::new();
    for line in script.lines().filter(|line| !line.starts_with('>')) {
        let _ = writeln!(shown, "{line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<usize>().expect("a number");
        if let ["hosts", count] = words[..] {
            world = Some(World::new(count.parse().expect("a number")));
            continue;
        }
        // The first line says what is shown.
        let Some(world) = &mut world else { continue };
        match words.first().copied() {
            Some("open") => {
                world.clients.push(Client::default());
                world.connect(world.clients.len(), number(1) - 1);
            }
            Some("again") => world.connect(number(1), number(2) - 1),
            Some("ask") => world.ask(number(1), act(&words[2..])),
            Some("cut") => _ = world.cut.insert(number(1) - 1),
            Some("heal") => world.cut.clear(),
            Some("run") => world.run(Span::millis(number(1) as u64)),
            _ => panic!("no command: {line}"),
        }
        shown.push_str(&core::mem::take(&mut world.out));
    }
    shown
}

#[test]
fn scripts_show_what_they_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/coordination/scripts");
    compare_scripts(folder, 4, |script| Ok(run(script)));
}
