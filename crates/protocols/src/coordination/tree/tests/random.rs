//! Random commands of several sessions on few paths: the machine and a model of it agree on each
//! answer, on each change, and on all nodes.

use super::super::{
    Answer, Change, Command, Object, Question, Tree, Who, check, reapable, sessions,
};
use super::model::Model;
use super::world::*;
use crate::coordination::keys;
use crate::smr::tests::member::{Member, client, from};
use quorate_kernel::ids::Incarnation;
use quorate_kernel::rng::Rng;
use quorate_kernel::tree::{Acl, Failure, Id, Item, Kind, SessionId, Told, TreeReply, Zxid};
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec::Vec;

pub const PATHS: [&str; 16] = [
    "/",
    "/a",
    "/b",
    "/a/x",
    "/a/y",
    "/a/x/p",
    "/a/x/q",
    "/b/x",
    "/a-",
    "/a/n0000000003",
    "/zookeeper",
    "/zookeeper/config",
    "/zookeeper/a",
    "/a/",
    "b",
    "/a//x",
];

/// Where limits of `/a` and of what is below it are.
const QUOTA_PATHS: [&str; 8] = [
    "/zookeeper/quota/a",
    "/zookeeper/quota/a/zookeeper_limits",
    "/zookeeper/quota/a/zookeeper_limits",
    "/zookeeper/quota/a/zookeeper_stats",
    "/zookeeper/quota/a/x",
    "/zookeeper/quota/a/x/zookeeper_limits",
    "/zookeeper/quota/a/x/zookeeper_stats",
    "/zookeeper/quota/zookeeper_limits",
];

const LIMIT_TEXTS: [&str; 6] = [
    "countHardLimit=3",
    "count=2,bytes=3=;byteHardLimit=6;countHardLimit=4",
    "count=-1,bytes=-1=;byteHardLimit=40",
    "count=1,bytes=2",
    "byteHardLimit=9",
    "many",
];

/// Makes commands at random, of sessions that it has heard of.
pub struct Source {
    rng: Rng,
    /// Whether it limits parts of the tree.
    has_quotas: bool,
    sessions: Vec<(SessionId, u64)>,
    due: Vec<(String, Zxid)>,
    zxid: u64,
}

impl Source {
    pub fn new(seed: u64) -> Source {
        let (sessions, due) = (Vec::new(), Vec::new());
        Source { rng: Rng::new(seed), has_quotas: false, sessions, due, zxid: 0 }
    }

    pub fn with_quotas(seed: u64) -> Source {
        Source { has_quotas: true, ..Source::new(seed) }
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.rng.below(of.len() as u64) as usize].clone()
    }

    fn path(&mut self) -> String {
        if self.has_quotas && self.rng.below(3) == 0 {
            return self.one_of(&QUOTA_PATHS).into();
        }
        // Those that are no paths are rare.
        let count = if self.rng.below(8) == 0 { PATHS.len() } else { 9 };
        self.one_of(&PATHS[..count]).into()
    }

    fn version(&mut self) -> Option<i32> {
        self.one_of(&[None, None, None, Some(0), Some(1), Some(2)])
    }

    fn acl(&mut self) -> Vec<Acl> {
        let permissions = self.one_of(&[31, 1, 12, 30]);
        let id = |scheme: &str, id: &str| Id { scheme: scheme.into(), id: id.into() };
        let ids = [Id::anyone(), digest("ann"), digest("bob"), id("auth", ""), id("x509", "")];
        let entry = Acl { permissions, id: self.one_of(&ids) };
        match self.rng.below(12) {
            0 => Vec::new(),
            1..6 => Acl::open(),
            6 => Vec::from([entry.clone(), entry]),
            7 => Vec::from([entry, Acl { permissions: 15, id: Id::anyone() }]),
            _ => Vec::from([entry]),
        }
    }

    fn who(&mut self) -> Who {
        let ids = [digest("ann"), digest("bob")];
        let ids = ids[..self.rng.below(3) as usize].to_vec();
        let known = self.sessions.clone();
        let (session, at) = match self.rng.below(6) {
            0 => (None, 1),
            1 => (Some(SessionId(self.rng.below(self.zxid + 2))), 1),
            _ if known.is_empty() => (None, 1),
            _ => {
                let (session, at) = self.one_of(&known);
                (Some(session), if self.rng.below(12) == 0 { 3 } else { at })
            }
        };
        Who { gateway: gateway(at), session, ids, peer: None }
    }

    fn data(&mut self) -> bytes::Bytes {
        if self.has_quotas && self.rng.below(3) == 0 {
            return data(self.one_of(&LIMIT_TEXTS));
        }
        data(["", "x", "four"][self.rng.below(3) as usize])
    }

    fn data_or_none(&mut self) -> Option<bytes::Bytes> {
        (self.rng.below(8) != 0).then(|| self.data())
    }

    fn write(&mut self) -> Item {
        let (path, version) = (self.path(), self.version());
        match self.rng.below(10) {
            0..4 => {
                let ttl = Kind::Ttl(self.rng.below(40));
                let kinds = [Kind::Persistent, Kind::Persistent, Kind::Ephemeral, Kind::Container];
                let kind = if self.rng.below(6) == 0 { ttl } else { self.one_of(&kinds) };
                let sequential = self.rng.below(4) == 0;
                let (data, acl) = (self.data_or_none(), self.acl());
                Item::Create { path, data, acl, kind, sequential }
            }
            4..7 => Item::Delete { path, version },
            7..9 => Item::Set { path, data: self.data_or_none(), version },
            _ => Item::SetAcl { path, acl: self.acl(), version },
        }
    }

    fn read(&mut self) -> Item {
        let (path, version) = (self.path(), self.version());
        match self.rng.below(7) {
            0 => Item::Check { path, version },
            1 => Item::GetAcl { path },
            2 => Item::CountBelow { path },
            3 => Item::Ephemerals { prefix: path },
            4 => exists(&path),
            5 => children(&path),
            _ => get(&path),
        }
    }

    fn several(&mut self, mut one: impl FnMut(&mut Source) -> Item) -> Vec<Item> {
        (0..self.rng.below(5)).map(|_| one(self)).collect()
    }

    fn seen(&mut self) -> Zxid {
        Zxid(self.zxid.saturating_sub(self.rng.below(6)))
    }

    pub fn command(&mut self) -> Command {
        let at = 1 + self.rng.below(3);
        let (session, attached) = (SessionId(self.rng.below(self.zxid + 2)), self.rng.below(4));
        let known = self.sessions.clone();
        let known = if known.is_empty() { session } else { self.one_of(&known).0 };
        if self.has_quotas && self.rng.below(8) == 0 {
            let (path, limits) = (self.one_of(&QUOTA_PATHS[1..3]), self.one_of(&LIMIT_TEXTS));
            return Command::Put(anybody(), path.into(), data(limits));
        }
        match self.rng.below(40) {
            0..3 => Command::Open { gateway: gateway(at), timeout_ms: 10 * at as u32 },
            3 => Command::Attach { gateway: gateway(at), session },
            4..6 => Command::Attach { gateway: gateway(at), session: known },
            6 => Command::Expire { session: known, attached },
            7 => Command::Close(self.who()),
            8..11 => Command::Put(self.who(), self.path(), self.data()),
            11..15 => {
                let seen = (self.path(), self.seen());
                // Some are due soon, or were when this was heard.
                let due = if self.rng.below(4) == 0 { &[][..] } else { &self.due.clone() };
                let (path, seen) = if due.is_empty() { seen } else { self.one_of(due) };
                Command::Reap { path, seen }
            }
            15..20 => {
                let items = self.several(|source| match source.rng.below(4) {
                    0 => Item::Check { path: source.path(), version: source.version() },
                    _ => source.write(),
                });
                Command::All(self.who(), items)
            }
            _ => Command::One(self.who(), self.write()),
        }
    }

    pub fn question(&mut self) -> Question {
        match self.rng.below(4) {
            0 => Question::Each(self.who(), self.several(Source::read)),
            1 => {
                let check =
                    |it: &mut Source| Item::Check { path: it.path(), version: it.version() };
                Question::All(self.who(), self.several(check))
            }
            _ => Question::One(self.who(), self.read()),
        }
    }

    /// It hears how things are, to ask for what may be there.
    pub fn hears(&mut self, member: &Member<Tree>) {
        let objects = member.machine.objects();
        let due = reapable(objects, "", 99, member.machine.now_ms() + 20).due;
        let zxid = match objects.get(&keys::META) {
            Some(Object::Meta(meta)) => meta.zxid,
            _ => Zxid(self.zxid),
        };
        self.knows(sessions(objects).map(|(id, it)| (id, it.gateway)), due, zxid);
    }

    /// What it asks for from now on: sessions and where they are, nodes that may be reaped, and the
    /// newest change.
    pub fn knows(
        &mut self,
        sessions: impl Iterator<Item = (SessionId, Incarnation)>,
        due: Vec<(String, Zxid)>,
        zxid: Zxid,
    ) {
        let at = |it: Incarnation| (1..4).find(|at| gateway(*at) == it).unwrap_or(1);
        self.sessions = sessions.map(|(id, it)| (id, at(it))).collect();
        (self.due, self.zxid) = (due, zxid.0);
    }
}

/// Asserts that a model has the same nodes and sessions.
fn is_as(member: &Member<Tree>, model: &Model) {
    let objects = member.machine.objects();
    let nodes = objects.iter().filter_map(|(key, object)| match object {
        Object::Node(node) => Some((keys::path(key)?, node)),
        _ => None,
    });
    let nodes: BTreeMap<_, _> = nodes.collect();
    assert!(nodes.keys().eq(model.nodes.keys()));
    for (path, node) in nodes {
        let of = &model.nodes[&path];
        assert_eq!((node.stat(), &node.data, node.creates), (of.stat, &of.data, of.made), "{path}");
        assert_eq!(node.acl(), of.acl, "{path}");
    }
    let sessions = sessions(objects).map(|(id, it)| (id, it.gateway, it.attached, it.timeout_ms));
    let of = model.sessions.iter();
    assert!(sessions.eq(of.map(|(id, it)| (*id, it.gateway, it.attached, it.timeout_ms))));
}

#[test]
fn the_machine_does_what_a_model_of_it_does() {
    does_what_a_model_does(Source::new);
}

#[test]
fn with_quotas_the_machine_does_what_a_model_of_it_does() {
    let refused = does_what_a_model_does(Source::with_quotas);
    assert!(refused > 50, "limits have often refused something: {refused}");
}

/// Asserts that the machine does what a model does; returns how often a limit was in the way.
fn does_what_a_model_does(source: fn(u64) -> Source) -> u64 {
    let (mut done, mut refused) = (BTreeMap::new(), 0);
    for seed in 0..60 {
        let (mut member, mut model) = (Member::<Tree>::new(), Model::new());
        let (mut source, mut rng, mut changes) = (source(seed), Rng::new(seed), 0);
        let (mut at_ms, mut ahead) = (0, 0);
        for number in 1..=200 {
            // Clocks of primaries differ.
            at_ms = (at_ms + rng.below(20)).saturating_sub(rng.below(8));
            let command = source.command();
            let said = format!("seed {seed}, command {number}: {command:?}");
            let answers =
                member.ask(at_ms, from(client(5, 1), number), core::slice::from_ref(&command));
            let expected = model.execute(at_ms, &command);
            *done.entry(kind(&command, &expected)).or_insert(0) += 1;
            refused += u64::from(is_full(&expected));
            assert_eq!(answers, [expected], "{said}");
            check(member.machine.objects());
            let news: Vec<Change> = member.changes_after(changes).expect("it is known");
            changes += news.len() as u64;
            assert_eq!(news, core::mem::take(&mut model.changes), "{said}");
            is_as(&member, &model);
            source.hears(&member);
            for _ in 0..3 {
                let question = source.question();
                let answer = member.machine.look(|on| super::super::ask(&question, on));
                assert_eq!(answer, model.ask(&question), "{said}, {question:?}");
                if question.may_go_ahead() {
                    ahead += 1;
                    let command = Command::Ask(question);
                    member.ask(at_ms, from(client(6, 1), ahead), core::slice::from_ref(&command));
                    let told = member.machine.reply(client(6, 1), ahead);
                    assert_eq!(told, Some((changes, &answer)), "{said}, {command:?}");
                    is_as(&member, &model);
                }
            }
        }
    }
    // Each command was often executed, and often refused where it can be.
    for (kind, least) in [
        ("one", 500),
        ("one failed", 500),
        ("all", 100),
        ("all failed", 100),
        ("put", 100),
        ("put failed", 100),
        ("open", 100),
        ("attach", 50),
        ("expired", 50),
        ("close", 20),
        ("reap", 20),
        ("reap failed", 100),
    ] {
        let count = done.get(kind).copied().unwrap_or_default();
        assert!(count >= least, "{kind}: {count} of {least}; {done:?}");
    }
    refused
}

/// Whether a limit was in the way.
fn is_full(answer: &Answer) -> bool {
    match answer {
        Answer::Told(TreeReply { told: Ok(Told::Many(all)), .. }) => {
            all.contains(&Err(Failure::Quota))
        }
        Answer::Told(reply) => reply.told == Err(Failure::Quota),
        _ => false,
    }
}

fn kind(command: &Command, answer: &Answer) -> &'static str {
    let is_done = match answer {
        Answer::Told(reply) => match &reply.told {
            Ok(Told::Many(all)) => all.iter().all(Result::is_ok),
            told => told.is_ok(),
        },
        _ => true,
    };
    match (command, is_done) {
        (Command::One(..), true) => "one",
        (Command::One(..), false) => "one failed",
        (Command::All(..), true) => "all",
        (Command::All(..), false) => "all failed",
        (Command::Put(..), true) => "put",
        (Command::Put(..), false) => "put failed",
        (Command::Reap { .. }, true) => "reap",
        (Command::Reap { .. }, false) => "reap failed",
        (Command::Open { .. }, _) => "open",
        (Command::Attach { .. }, _) if *answer != Answer::Expired => "attach",
        (Command::Expire { .. }, _) if *answer == Answer::Expired => "expired",
        (Command::Close(_), true) => "close",
        _ => "other",
    }
}
