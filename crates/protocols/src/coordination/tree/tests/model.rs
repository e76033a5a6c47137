//! The tree once more, as simply as it can be said: a map of whole paths, copied before each
//! command and put back if the command fails. Nothing of it is shared with the machine.

mod quotas;
mod reads;

use super::super::{Answer, Change, Command, Who};
use quorate_kernel::ids::Incarnation;
use quorate_kernel::tree::{
    ADMIN, Acl, CREATE, DELETE, Failure, Id, Item, Kind, READ, SessionId, Stat, Told, TreeReply,
    WRITE, What, Zxid,
};
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

#[derive(Clone, Debug, PartialEq)]
pub struct ModelNode {
    pub data: Option<bytes::Bytes>,
    pub acl: Vec<Acl>,
    pub kind: Kind,
    pub stat: Stat,
    /// How many children were made.
    pub made: i32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelSession {
    pub gateway: Incarnation,
    pub attached: u64,
    pub timeout_ms: u32,
}

#[derive(Clone, Debug)]
pub struct Model {
    pub nodes: BTreeMap<String, ModelNode>,
    pub sessions: BTreeMap<SessionId, ModelSession>,
    pub zxid: u64,
    pub now_ms: u64,
    pub changes: Vec<Change>,
}

type Result<T = Told> = core::result::Result<T, Failure>;

fn parent_of(path: &str) -> String {
    let end = path.rfind('/').expect("it is absolute");
    if end == 0 { "/".to_string() } else { path[..end].to_string() }
}

fn is_path(path: &str) -> bool {
    path == "/"
        || path.starts_with('/')
            && path[1..].split('/').all(|name| !name.is_empty() && name != "." && name != "..")
}

fn valid(path: &str) -> Result<()> {
    if is_path(path) { Ok(()) } else { Err(Failure::BadArguments) }
}

/// Of the lists that the tests make: of the world, of users, and of whoever asks.
fn fixed(acl: &[Acl], who: &Who) -> Result<Vec<Acl>> {
    let mut list: Vec<Acl> = Vec::new();
    for entry in acl {
        match entry.id.scheme.as_str() {
            "auth" if who.ids.is_empty() => return Err(Failure::InvalidAcl),
            "auth" => {
                let permissions = entry.permissions;
                list.extend(who.ids.iter().cloned().map(|id| Acl { permissions, id }));
            }
            "world" | "digest" => list.push(entry.clone()),
            _ => return Err(Failure::InvalidAcl),
        }
    }
    let mut unique: Vec<Acl> = Vec::new();
    for entry in list {
        if !unique.contains(&entry) {
            unique.push(entry);
        }
    }
    if unique.is_empty() { Err(Failure::InvalidAcl) } else { Ok(unique) }
}

fn allowed(node: &ModelNode, permission: u32, who: &Who) -> Result<()> {
    for Acl { permissions, id } in &node.acl {
        if permissions & permission != 0 && (*id == Id::anyone() || who.ids.contains(id)) {
            return Ok(());
        }
    }
    Err(Failure::NoAuth)
}

impl Model {
    pub fn new() -> Model {
        let mut nodes = BTreeMap::new();
        for (path, children) in
            [("/", 1), ("/zookeeper", 2), ("/zookeeper/config", 0), ("/zookeeper/quota", 0)]
        {
            let is_open = ["/", "/zookeeper/quota"].contains(&path);
            let permissions = if is_open { 31 } else { READ };
            let acl = Vec::from([Acl { permissions, id: Id::anyone() }]);
            let stat = Stat { children, cversion: -(children as i32), ..Stat::default() };
            let node =
                ModelNode { data: Some([][..].into()), acl, kind: Kind::Persistent, stat, made: 0 };
            nodes.insert(path.to_string(), node);
        }
        let sessions = BTreeMap::new();
        Model { nodes, sessions, zxid: 0, now_ms: 0, changes: Vec::new() }
    }

    fn node(&self, path: &str) -> Result<&ModelNode> {
        self.nodes.get(path).ok_or(Failure::NoNode)
    }

    fn of_parent(&mut self, path: &str, change: impl FnOnce(&mut ModelNode)) {
        let zxid = Zxid(self.zxid + 1);
        let parent = self.nodes.get_mut(&parent_of(path)).expect("it has a parent");
        change(parent);
        parent.stat.cversion = parent.stat.cversion.wrapping_add(1);
        parent.stat.pzxid = zxid;
    }

    fn tell(&mut self, path: &str, what: What) {
        let acl = self.nodes[path].acl.clone();
        let is_open = acl.iter().any(|it| it.permissions & READ != 0 && it.id.scheme == "world");
        let (zxid, path) = (Zxid(self.zxid + 1), path.to_string());
        self.changes.push(match is_open {
            true => Change::Node { zxid, path, what },
            false => Change::Guarded { zxid, path, what, acl: acl.into() },
        });
    }

    fn make(
        &mut self,
        path: &str,
        kind: Kind,
        owner: u64,
        acl: Vec<Acl>,
        data: Option<&[u8]>,
    ) -> Result<Stat> {
        let data = self.new_data(path, data)?;
        let (zxid, time) = (Zxid(self.zxid + 1), self.now_ms as i64);
        let stat = Stat {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: time,
            mtime: time,
            ephemeral_owner: SessionId(owner),
            data_length: data.as_ref().map_or(0, bytes::Bytes::len) as u32,
            ..Stat::default()
        };
        self.of_parent(path, |parent| {
            parent.stat.children += 1;
            parent.made = parent.made.wrapping_add(1);
        });
        self.nodes.insert(path.to_string(), ModelNode { data, acl, kind, stat, made: 0 });
        self.tell(path, What::Created);
        self.show();
        Ok(stat)
    }

    fn remove(&mut self, path: &str) {
        self.tell(path, What::Deleted);
        self.nodes.remove(path);
        self.of_parent(path, |parent| parent.stat.children -= 1);
        self.show();
    }

    fn set(&mut self, who: &Who, path: &str, data: Option<&[u8]>, version: Option<i32>) -> Result {
        valid(path)?;
        let (zxid, time) = (Zxid(self.zxid + 1), self.now_ms as i64);
        let before = self.node(path)?;
        allowed(before, WRITE, who)?;
        let length = |data: Option<&bytes::Bytes>| data.map_or(0, bytes::Bytes::len) as i64;
        let data = self.given(path, data)?;
        self.has_room(path, 0, length(data.as_ref()) - length(before.data.as_ref()))?;
        let node = self.nodes.get_mut(path).ok_or(Failure::NoNode)?;
        if version.is_some_and(|version| version != node.stat.version) {
            return Err(Failure::BadVersion);
        }
        node.stat.data_length = length(data.as_ref()) as u32;
        node.data = data;
        node.stat.version += 1;
        (node.stat.mzxid, node.stat.mtime) = (zxid, time);
        let stat = node.stat;
        self.tell(path, What::Data);
        self.show();
        Ok(Told::Stat(stat))
    }

    fn write(&mut self, who: &Who, item: &Item) -> Result {
        match item {
            Item::Create { path, data, acl, kind, sequential } => {
                let owner = match (kind, who.session) {
                    (Kind::Ephemeral, None) | (Kind::Ttl(0), _) => {
                        return Err(Failure::BadArguments);
                    }
                    (Kind::Ephemeral, Some(session)) => session.0,
                    _ => 0,
                };
                valid(&if *sequential { format!("{path}1") } else { path.clone() })?;
                if path == "/" && !sequential {
                    return Err(Failure::Exists);
                }
                let acl = fixed(acl, who)?;
                let parent = self.node(&parent_of(path))?;
                allowed(parent, CREATE, who)?;
                let number = if *sequential { format!("{:010}", parent.made) } else { "".into() };
                let path = format!("{path}{number}");
                if self.nodes.contains_key(&path) {
                    return Err(Failure::Exists);
                }
                if parent.stat.ephemeral_owner.0 != 0 {
                    return Err(Failure::NoChildrenForEphemerals);
                }
                let stat = self.make(&path, *kind, owner, acl, data.as_deref())?;
                Ok(Told::Created { path, stat })
            }
            Item::Delete { path, version } => {
                valid(path)?;
                if path == "/" || matches!(self.nodes.get(path), Some(it) if it.stat.czxid.0 == 0) {
                    return Err(Failure::BadArguments);
                }
                allowed(self.node(&parent_of(path))?, DELETE, who)?;
                let node = self.node(path)?;
                if version.is_some_and(|version| version != node.stat.version) {
                    return Err(Failure::BadVersion);
                }
                if node.stat.children != 0 {
                    return Err(Failure::NotEmpty);
                }
                self.remove(path);
                Ok(Told::Done)
            }
            Item::Set { path, data, version } => self.set(who, path, data.as_deref(), *version),
            Item::SetAcl { path, acl, version } => {
                valid(path)?;
                let acl = fixed(acl, who)?;
                let node = self.nodes.get_mut(path).ok_or(Failure::NoNode)?;
                allowed(node, ADMIN, who)?;
                if version.is_some_and(|version| version != node.stat.aversion) {
                    return Err(Failure::BadVersion);
                }
                node.acl = acl;
                node.stat.aversion += 1;
                Ok(Told::Stat(node.stat))
            }
            _ => self.read(who, item),
        }
    }

    fn put(&mut self, who: &Who, path: &str, data: &[u8]) -> Result {
        valid(path)?;
        if self.nodes.contains_key(path) {
            return self.set(who, path, Some(data), None);
        }
        let parent = parent_of(path);
        if !self.nodes.contains_key(&parent) {
            self.put(who, &parent, &[])?;
        }
        allowed(self.node(&parent)?, CREATE, who)?;
        if self.node(&parent)?.stat.ephemeral_owner.0 != 0 {
            return Err(Failure::NoChildrenForEphemerals);
        }
        Ok(Told::Stat(self.make(path, Kind::Persistent, 0, Acl::open(), Some(data))?))
    }

    fn end(&mut self, session: SessionId) {
        let owned = self.nodes.iter().filter(|(_, node)| node.stat.ephemeral_owner == session);
        let owned = owned.map(|(path, _)| path.clone()).collect::<Vec<_>>();
        owned.iter().for_each(|path| self.remove(path));
        let ended = self.sessions.remove(&session).expect("it is there");
        self.changes.push(Change::Session { session, gateway: ended.gateway, is_moved: false });
    }

    fn reap(&mut self, path: &str, seen: Zxid) -> Result {
        valid(path)?;
        let node = self.node(path)?;
        if node.stat.children > 0 {
            return Err(Failure::NotEmpty);
        }
        let is_over = match node.kind {
            Kind::Container => node.made > 0,
            Kind::Ttl(ttl_ms) => self.now_ms > node.stat.mtime as u64 + ttl_ms,
            _ => false,
        };
        if !is_over || seen != node.stat.mzxid.max(node.stat.pzxid) {
            return Err(Failure::BadVersion);
        }
        self.remove(path);
        Ok(Told::Done)
    }

    fn admit(&self, who: &Who) -> Result<()> {
        let Some(session) = who.session else { return Ok(()) };
        let session = self.sessions.get(&session).ok_or(Failure::SessionExpired)?;
        if session.gateway == who.gateway { Ok(()) } else { Err(Failure::SessionMoved) }
    }

    /// What all of some things together are told: all, or what has failed.
    fn all(&mut self, items: &[Item], one: impl Fn(&mut Model, &Item) -> Result) -> (bool, Told) {
        let told = items.iter().map(|item| one(self, item)).collect::<Vec<_>>();
        let Some(failed) = told.iter().position(Result::is_err) else {
            return (true, Told::Many(told));
        };
        let told = told.into_iter().enumerate().map(|(at, told)| match at {
            _ if at < failed => Err(Failure::NotDone),
            _ if at > failed => Err(Failure::NotTried),
            _ => told,
        });
        (false, Told::Many(told.collect()))
    }

    pub fn execute(&mut self, at_ms: u64, command: &Command) -> Answer {
        self.now_ms = self.now_ms.max(at_ms);
        let before = self.clone();
        let answer = self.try_to(command);
        let (nodes, sessions) = (&self.nodes, &self.sessions);
        self.zxid += u64::from(*nodes != before.nodes || *sessions != before.sessions);
        let answer = answer.unwrap_or_else(|told| {
            *self = before;
            Answer::Told(TreeReply { zxid: Zxid(0), told })
        });
        let zxid = Zxid(self.zxid);
        match answer {
            Answer::Told(reply) => Answer::Told(TreeReply { zxid, ..reply }),
            Answer::Open { session, timeout_ms, attached, .. } => {
                Answer::Open { session, timeout_ms, attached, zxid }
            }
            other => other,
        }
    }

    /// Does a command. The answer lacks the newest change; an error is what is told if all that was
    /// done is to be undone.
    fn try_to(&mut self, command: &Command) -> core::result::Result<Answer, Result> {
        let told = match command {
            Command::One(who, item) => self.admit(who).and_then(|()| self.write(who, item)),
            Command::All(who, items) => {
                self.admit(who).map_err(Err)?;
                match self.all(items, |model, item| model.write(who, item)) {
                    (true, told) => Ok(told),
                    (false, told) => return Err(Ok(told)),
                }
            }
            Command::Put(who, path, data) => {
                self.admit(who).and_then(|()| self.put(who, path, data))
            }
            Command::Close(who) => {
                self.admit(who).map_err(Err)?;
                self.end(who.session.ok_or(Err(Failure::BadArguments))?);
                Ok(Told::Done)
            }
            Command::Ask(question) => return Ok(self.ask(question)),
            Command::Reap { path, seen } => self.reap(path, *seen),
            Command::Begin { .. } => unreachable!("nothing is lost here"),
            Command::Expire { session, attached } => match self.sessions.get(session) {
                Some(known) if known.attached != *attached => Ok(Told::Done),
                Some(_) => {
                    self.end(*session);
                    return Ok(Answer::Expired);
                }
                None => return Ok(Answer::Expired),
            },
            Command::Open { gateway, timeout_ms } => {
                let (session, timeout_ms) = (SessionId(self.zxid + 1), *timeout_ms);
                let opened = ModelSession { gateway: *gateway, attached: 1, timeout_ms };
                assert_eq!(self.sessions.insert(session, opened), None);
                return Ok(Answer::Open { session, timeout_ms, attached: 1, zxid: Zxid(0) });
            }
            Command::Attach { gateway, session } => {
                let session = *session;
                let Some(known) = self.sessions.get_mut(&session) else {
                    return Ok(Answer::Expired);
                };
                let was = core::mem::replace(&mut known.gateway, *gateway);
                known.attached += 1;
                if was != *gateway {
                    self.changes.push(Change::Session { session, gateway: was, is_moved: true });
                }
                let ModelSession { attached, timeout_ms, .. } = self.sessions[&session];
                return Ok(Answer::Open { session, timeout_ms, attached, zxid: Zxid(0) });
            }
        };
        told.map(|told| Answer::Told(TreeReply { zxid: Zxid(0), told: Ok(told) })).map_err(Err)
    }
}
