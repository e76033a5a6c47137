//! A client, and what it knows.

use crate::queue::HostIndex;
use quorate_check::history::Completion;
use quorate_check::tree::{AskedId, ConnectionId};
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{
    Act, Changed, Failure, Followed, Item, Password, Refollow, SessionId, Told, TreeReply, What,
    Zxid,
};
use std::collections::{BTreeMap, BTreeSet};

/// Something that a client waits for.
pub(super) struct Open {
    pub number: u32,
    pub recorded: AskedId,
    pub operation: Operation,
}

/// A connection for a session.
pub(super) struct Connection {
    /// The fleet's number of it.
    pub number: u32,
    pub host: HostIndex,
    /// Names the session's watch at the host, and what is told of it.
    pub ticket: Ticket,
    pub watch: u32,
    pub recorded: ConnectionId,
    /// Whether the client was told that it has its session.
    pub is_open: bool,
    /// Whether the client has still to follow what it had followed before.
    pub lacks: bool,
}

/// What a client follows.
#[derive(Default)]
pub(super) struct Follows {
    data: BTreeSet<String>,
    absent: BTreeSet<String>,
    children: BTreeSet<String>,
    persistent: BTreeSet<String>,
    recursive: BTreeSet<String>,
}

impl Follows {
    /// Follows every node, until it is told otherwise.
    pub fn all(&mut self) {
        self.recursive.insert("/".to_owned());
    }
}

/// A client.
pub(super) struct Client {
    /// Whether it has sessions at all.
    pub has_sessions: bool,
    /// What it waits for.
    pub open: Vec<Open>,
    pub connection: Option<Connection>,
    /// The session that it has, or had.
    pub known: Option<(SessionId, Password)>,
    pub follows: Follows,
    /// The newest change that an answer has told.
    pub seen: Zxid,
    /// The version that it saw last of each node that was there.
    pub versions: BTreeMap<String, i32>,
    /// The sequential nodes that it has made.
    pub numbered: Vec<String>,
    /// Whether it has read the whole tree in the end.
    pub has_read_all: bool,
}

impl Connection {
    /// As it is recorded, if the session is open.
    pub fn opened(&self) -> Option<ConnectionId> {
        self.is_open.then_some(self.recorded)
    }
}

impl Client {
    /// A client that knows nothing.
    pub fn new(has_sessions: bool) -> Client {
        Client {
            has_sessions,
            open: Vec::new(),
            connection: None,
            known: None,
            follows: Follows::default(),
            seen: Zxid(0),
            versions: BTreeMap::new(),
            numbered: Vec::new(),
            has_read_all: false,
        }
    }

    /// Its session has ended, or all is lost.
    pub fn forget(&mut self) {
        self.known = None;
        self.follows = Follows::default();
        self.seen = Zxid(0);
    }

    /// The session in which it asks.
    pub fn session(&self) -> Option<SessionId> {
        let is_open = self.connection.as_ref().is_some_and(|it| it.is_open);
        self.known.filter(|_| is_open).map(|(session, _)| session)
    }

    /// Whether it waits for its session.
    pub fn is_opening(&self) -> bool {
        self.connection.as_ref().is_some_and(|it| !it.is_open)
    }

    /// What it must ask first in a connection: to follow what it had followed before.
    pub fn first(&mut self) -> Option<Act> {
        let connection = self.connection.as_mut()?;
        if !core::mem::take(&mut connection.lacks) {
            return None;
        }
        let all = |paths: &BTreeSet<String>| paths.iter().cloned().collect();
        let Follows { data, absent, children, persistent, recursive } = &self.follows;
        Some(Act::Refollow(Refollow {
            seen: self.seen,
            data: all(data),
            absent: all(absent),
            children: all(children),
            persistent: all(persistent),
            recursive: all(recursive),
        }))
    }

    /// Whether this is the end of its session, as it has asked.
    pub fn closes(&self, number: u32, completion: &Completion) -> bool {
        let is_close = |open: &&Open| match &open.operation {
            Operation::Tree(ask) => open.number == number && ask.act == Act::Close,
            _ => false,
        };
        let is_done = matches!(completion, Completion::Tree(TreeReply { told: Ok(_), .. }));
        is_done && self.open.iter().any(|open| is_close(&open))
    }

    /// Whether it could not follow again what it had followed before: it looks for another host.
    pub fn is_blind(&self, number: u32, completion: &Completion) -> bool {
        let is_again = |open: &Open| match &open.operation {
            Operation::Tree(ask) => open.number == number && matches!(ask.act, Act::Refollow(_)),
            _ => false,
        };
        let is_done = matches!(completion, Completion::Tree(TreeReply { told: Ok(_), .. }));
        !is_done && self.open.iter().any(is_again)
    }

    /// Keeps what it was told.
    pub fn learn(&mut self, operation: &Operation, completion: &Completion) {
        let (Operation::Tree(ask), Completion::Tree(reply)) = (operation, completion) else {
            return;
        };
        if ask.session.is_some() {
            self.seen = self.seen.max(reply.zxid);
            self.follow(&ask.act, &reply.told);
        }
        let items = match &ask.act {
            Act::One(item) => core::slice::from_ref(item),
            Act::All(items) | Act::Each(items) => items,
            _ => &[],
        };
        let one = [reply.told.clone()];
        let told = match &reply.told {
            Ok(Told::Many(many)) => &many[..],
            _ => &one,
        };
        items.iter().zip(told).for_each(|(item, told)| self.see(item, told));
    }

    fn see(&mut self, item: &Item, told: &Result<Told, Failure>) {
        match told {
            Ok(Told::Created { path, stat }) => {
                if matches!(item, Item::Create { sequential: true, .. }) {
                    self.numbered.push(path.clone());
                }
                self.versions.insert(path.clone(), stat.version);
            }
            Ok(Told::Stat(stat) | Told::Data { stat, .. } | Told::Children { stat, .. }) => {
                self.versions.insert(item.path().to_owned(), stat.version);
            }
            Err(Failure::NoNode) => _ = self.versions.remove(item.path()),
            _ => {}
        }
    }

    fn follow(&mut self, act: &Act, told: &Result<Told, Failure>) {
        let Follows { data, absent, children, persistent, recursive } = &mut self.follows;
        let is_there = told.is_ok();
        _ = match act {
            Act::One(Item::Exists { path, watch: true } | Item::Get { path, watch: true })
                if is_there =>
            {
                data.insert(path.clone())
            }
            Act::One(Item::Exists { path, watch: true }) if *told == Err(Failure::NoNode) => {
                absent.insert(path.clone())
            }
            Act::One(Item::Children { path, watch: true }) if is_there => {
                children.insert(path.clone())
            }
            Act::Follow { path, recursive: true } if is_there => recursive.insert(path.clone()),
            Act::Follow { path, recursive: false } if is_there => persistent.insert(path.clone()),
            Act::Unfollow { path, kind, only_check: false } if is_there => {
                let is = |one: Followed| *kind == one || *kind == Followed::Any;
                if is(Followed::Data) {
                    data.remove(path);
                    absent.remove(path);
                }
                if is(Followed::Children) {
                    children.remove(path);
                }
                (is(Followed::Persistent) && persistent.remove(path))
                    | (is(Followed::Recursive) && recursive.remove(path))
            }
            _ => false,
        };
    }

    /// It is told that a node has changed. What it followed once it follows no more.
    pub fn on_changed(&mut self, changed: &Changed) {
        let Changed { path, what, .. } = changed;
        if *what != What::Children {
            self.follows.data.remove(path);
            self.follows.absent.remove(path);
        }
        if matches!(what, What::Children | What::Deleted) {
            self.follows.children.remove(path);
        }
    }
}
