//! A tree with a clock that the tests set, and words to ask it with.

use crate::coordination::keys;
use crate::coordination::tree::{Answer, Change, Command, Node, Object, Question, Tree, Who};
use crate::coordination::tree::{ask, check};
use crate::smr::tests::member::{Member, client, from};
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::path::Path;
use quorate_kernel::tree::{
    Acl, Failure, Id, Item, Kind, SessionId, Stat, Told, TreeReply, What, Zxid,
};
use std::string::String;
use std::vec::Vec;

/// A tree.
pub struct World {
    pub member: Member<Tree>,
    /// The primary's clock.
    pub now_ms: u64,
    next: u64,
    followed: u64,
}

/// The gateways of clients.
pub fn gateway(number: u64) -> Incarnation {
    client(number, 1)
}

/// A client without a session that has shown nothing.
pub fn anybody() -> Who {
    Who { gateway: gateway(1), session: None, ids: Vec::new(), peer: None }
}

/// A client that has shown that it is a user.
pub fn user(name: &str) -> Who {
    Who { ids: Vec::from([digest(name)]), ..anybody() }
}

pub fn digest(name: &str) -> Id {
    Id { scheme: "digest".into(), id: [name, ":digest"].concat() }
}

pub fn data(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub fn create(path: &str, text: &str) -> Item {
    of_kind(path, text, Kind::Persistent)
}

pub fn of_kind(path: &str, text: &str, kind: Kind) -> Item {
    let (acl, sequential) = (Acl::open(), false);
    Item::Create { path: path.into(), data: Some(data(text)), acl, kind, sequential }
}

pub fn ephemeral(path: &str) -> Item {
    of_kind(path, "", Kind::Ephemeral)
}

pub fn sequential(mut item: Item) -> Item {
    if let Item::Create { sequential, .. } = &mut item {
        *sequential = true;
    }
    item
}

pub fn with_acl(mut item: Item, list: &[Acl]) -> Item {
    if let Item::Create { acl, .. } = &mut item {
        *acl = list.to_vec();
    }
    item
}

pub fn set(path: &str, text: &str, version: Option<i32>) -> Item {
    Item::Set { path: path.into(), data: Some(data(text)), version }
}

pub fn delete(path: &str, version: Option<i32>) -> Item {
    Item::Delete { path: path.into(), version }
}

pub fn checked(path: &str, version: Option<i32>) -> Item {
    Item::Check { path: path.into(), version }
}

pub fn exists(path: &str) -> Item {
    Item::Exists { path: path.into(), watch: false }
}

pub fn get(path: &str) -> Item {
    Item::Get { path: path.into(), watch: false }
}

pub fn children(path: &str) -> Item {
    Item::Children { path: path.into(), watch: false }
}

/// A node was made, removed or set.
pub fn node(zxid: u64, path: &str, what: What) -> Change {
    Change::Node { zxid: Zxid(zxid), path: path.into(), what }
}

/// How a node without children is that a change has made at a time.
pub fn made(zxid: u64, ctime: i64) -> Stat {
    let zxid = Zxid(zxid);
    Stat { czxid: zxid, mzxid: zxid, pzxid: zxid, ctime, mtime: ctime, ..Stat::default() }
}

/// A node was made.
pub fn created(path: &str, stat: Stat) -> Result<Told, Failure> {
    Ok(Told::Created { path: path.into(), stat })
}

impl World {
    /// A tree before the first command.
    pub fn new() -> World {
        let world = World { member: Member::new(), now_ms: 100, next: 1, followed: 0 };
        check(world.member.machine.objects());
        world
    }

    /// Executes a command in an entry of its own.
    pub fn run(&mut self, command: Command) -> Answer {
        let from = from(client(7, 1), self.next);
        self.next += 1;
        let answers = self.member.ask(self.now_ms, from, &[command]);
        check(self.member.machine.objects());
        answers.into_iter().next().expect("it was executed")
    }

    /// Executes a command that is answered by what was done, or why not.
    pub fn told(&mut self, command: Command) -> TreeReply {
        match self.run(command) {
            Answer::Told(reply) => reply,
            other => panic!("it is told, not {other:?}"),
        }
    }

    /// Does one thing.
    pub fn one(&mut self, who: &Who, item: Item) -> Result<Told, Failure> {
        self.told(Command::One(who.clone(), item)).told
    }

    /// Does one thing that must be done.
    pub fn done(&mut self, item: Item) -> Told {
        self.one(&anybody(), item).expect("nothing is wrong with it")
    }

    /// Does all or nothing.
    pub fn all(&mut self, who: &Who, items: &[Item]) -> Result<Told, Failure> {
        self.told(Command::All(who.clone(), items.to_vec())).told
    }

    /// Opens a session; a client that has it.
    pub fn open(&mut self, at: u64) -> Who {
        let gateway = gateway(at);
        match self.run(Command::Open { gateway, timeout_ms: 4000 }) {
            Answer::Open { session, .. } => Who { gateway, session: Some(session), ..anybody() },
            other => panic!("a session is opened, not {other:?}"),
        }
    }

    /// Reads something.
    pub fn ask(&self, question: &Question) -> Answer {
        self.member.machine.look(|on| ask(question, on))
    }

    /// Reads one thing.
    pub fn read(&self, who: &Who, item: Item) -> Result<Told, Failure> {
        match self.ask(&Question::One(who.clone(), item)) {
            Answer::Told(reply) => reply.told,
            other => panic!("it is told, not {other:?}"),
        }
    }

    /// How a node is.
    pub fn stat(&self, path: &str) -> Stat {
        match self.read(&anybody(), exists(path)) {
            Ok(Told::Stat(stat)) => stat,
            other => panic!("{path} is there, not {other:?}"),
        }
    }

    pub fn is_there(&self, path: &str) -> bool {
        self.read(&anybody(), exists(path)).is_ok()
    }

    /// The names of a node's children.
    pub fn names(&self, path: &str) -> Vec<String> {
        match self.read(&anybody(), children(path)) {
            Ok(Told::Children { names, .. }) => names,
            other => panic!("{path} has children, not {other:?}"),
        }
    }

    /// The newest change.
    pub fn zxid(&self) -> u64 {
        match self.ask(&Question::Sync(anybody())) {
            Answer::Told(TreeReply { zxid, told: Ok(Told::Done) }) => zxid.0,
            other => panic!("it is told, not {other:?}"),
        }
    }

    /// What has happened since this was asked last.
    pub fn news(&mut self) -> Vec<Change> {
        let news = self.member.changes_after(self.followed).expect("it is known");
        self.followed += news.len() as u64;
        news
    }

    /// Sets something of a node that clients cannot set.
    pub fn alter(&mut self, path: &str, alter: impl FnOnce(&mut Node)) {
        self.replace(keys::node(Path::of(path).expect("it is a path")), |object| {
            let Object::Node(node) = object else { panic!("{path} is a node") };
            alter(node);
        });
    }

    /// Sets something of an object that clients cannot set.
    pub fn replace(&mut self, key: Bytes, alter: impl FnOnce(&mut Object)) {
        let mut object = self.member.machine.objects()[&key].clone();
        alter(&mut object);
        self.member.put(key, object);
    }
}

/// The session of a client.
pub fn session(who: &Who) -> SessionId {
    who.session.expect("the client has one")
}
