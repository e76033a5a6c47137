//! Sound records pass; each kind of a broken promise is seen.

mod ephemerals;
mod order;
mod watches;

use super::{ConnectionId, Record, judge};
use crate::history::{ClientId, Completion};
use crate::report::Verdict;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Time;
use quorate_kernel::tree::{
    Acl, Act, Ask, Changed, Failure, Item, Kind, SessionId, Stat, Told, TreeReply, What, Zxid,
};

const STEPS_MAX: u64 = 1_000_000;
const MS: u64 = 1_000_000;

/// A record as a test writes it: each step takes a millisecond.
#[derive(Default)]
struct Story {
    record: Record,
    now: u64,
}

/// A client that has a session.
#[derive(Clone, Copy)]
struct Client {
    id: ClientId,
    on: ConnectionId,
    session: SessionId,
}

impl Story {
    fn now(&mut self) -> Time {
        self.now += MS;
        Time(self.now)
    }

    /// From now on hosts answer what sessions read, or do not.
    fn read_here(&mut self, has_session_reads: bool) {
        self.record = core::mem::take(&mut self.record).with_session_reads(has_session_reads);
    }

    /// A client opens a session by this change.
    fn open(&mut self, id: u32, zxid: u64) -> Client {
        let session = SessionId(zxid);
        let on = self.connect(id, None);
        self.opened(on, session);
        Client { id: ClientId(id), on, session }
    }

    fn connect(&mut self, id: u32, session: Option<SessionId>) -> ConnectionId {
        let now = self.now();
        self.record.connect(ClientId(id), session, now)
    }

    fn opened(&mut self, on: ConnectionId, session: SessionId) {
        let now = self.now();
        self.record.opened(on, session, 100, now);
    }

    /// A client goes on with its session at another host.
    fn again(&mut self, client: Client) -> Client {
        let on = self.connect(client.id.0, Some(client.session));
        self.opened(on, client.session);
        Client { on, ..client }
    }

    /// A client asks, and is told this.
    fn tell(&mut self, client: Client, act: Act, zxid: u64, told: Result<Told, Failure>) {
        let asked = self.ask(client, act);
        self.answer(asked, zxid, told);
    }

    fn ask(&mut self, client: Client, act: Act) -> super::AskedId {
        let now = self.now();
        let ask = Ask { session: Some(client.session), opening: None, act };
        self.record.ask(client.id, Some(client.on), Operation::Tree(ask.into()), now)
    }

    fn answer(&mut self, asked: super::AskedId, zxid: u64, told: Result<Told, Failure>) {
        let now = self.now();
        self.record.answer(asked, Completion::Tree(TreeReply { zxid: Zxid(zxid), told }), now);
    }

    fn unknown(&mut self, asked: super::AskedId) {
        let now = self.now();
        self.record.answer(asked, Completion::Unknown, now);
    }

    /// A client without a session asks with a key.
    fn plain(&mut self, id: u32, operation: Operation, completion: Completion) {
        let now = self.now();
        let asked = self.record.ask(ClientId(id), None, operation, now);
        let now = self.now();
        self.record.answer(asked, completion, now);
    }

    fn event(&mut self, client: Client, zxid: u64, path: &str, what: What) {
        let now = self.now();
        let changed = Changed { zxid: Zxid(zxid), path: path.to_string(), what };
        self.record.changed(client.on, changed, now);
    }

    fn expired(&mut self, on: ConnectionId) {
        let now = self.now();
        self.record.expired(on, now);
    }

    /// Time passes.
    fn wait(&mut self, ms: u64) {
        self.now += ms * MS;
    }

    fn verdict(&self) -> Verdict {
        judge(&self.record, STEPS_MAX)
    }

    fn holds(&self) {
        assert_eq!(self.verdict(), Verdict::Holds);
    }

    /// The judge condemns it, with these words.
    fn is_wrong(&self, words: &str) {
        match self.verdict() {
            Verdict::Violated(explanation) => {
                let text = explanation.to_string();
                assert!(text.contains(words), "{text}");
            }
            other => panic!("{other}"),
        }
    }
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn item(path: &str, data: &str, kind: Kind, sequential: bool) -> Item {
    Item::Create {
        path: path.to_string(),
        data: Some(bytes(data)),
        acl: Acl::open(),
        kind,
        sequential,
    }
}

fn create(path: &str, data: &str) -> Act {
    Act::One(item(path, data, Kind::Persistent, false))
}

fn ephemeral(path: &str) -> Act {
    Act::One(item(path, "", Kind::Ephemeral, false))
}

fn sequential(path: &str) -> Act {
    Act::One(item(path, "", Kind::Persistent, true))
}

fn set_item(path: &str, data: &str) -> Item {
    Item::Set { path: path.to_string(), data: Some(bytes(data)), version: None }
}

fn set(path: &str, data: &str) -> Act {
    Act::One(set_item(path, data))
}

fn delete(path: &str) -> Act {
    Act::One(Item::Delete { path: path.to_string(), version: None })
}

fn get(path: &str, watch: bool) -> Act {
    Act::One(Item::Get { path: path.to_string(), watch })
}

fn exists(path: &str, watch: bool) -> Act {
    Act::One(Item::Exists { path: path.to_string(), watch })
}

fn children(path: &str, watch: bool) -> Act {
    Act::One(Item::Children { path: path.to_string(), watch })
}

fn sync() -> Act {
    Act::Sync { path: String::from("/") }
}

/// A node that was made by a change, and has so many bytes.
fn made(zxid: u64, data: &str) -> Stat {
    let zxid = Zxid(zxid);
    let data_length = data.len() as u32;
    Stat { czxid: zxid, mzxid: zxid, pzxid: zxid, data_length, ..Stat::default() }
}

/// The same when it has been set so often, the last time by a change.
fn changed(stat: Stat, zxid: u64, version: i32) -> Stat {
    Stat { mzxid: Zxid(zxid), version, ..stat }
}

fn created(path: &str, stat: Stat) -> Result<Told, Failure> {
    Ok(Told::Created { path: path.to_string(), stat })
}

fn data(text: &str, stat: Stat) -> Result<Told, Failure> {
    Ok(Told::Data { data: Some(bytes(text)), stat })
}

fn names(names: &[&str], stat: Stat) -> Result<Told, Failure> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    Ok(Told::Children { names, stat })
}
