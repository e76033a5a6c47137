//! A tree as its clients are told that it is: what each change makes of it, and what reads show.
//!
//! It is written from the words of the operations alone, and shares nothing with the engine.

use super::lives::begin_of;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::tree::{Acl, Act, Failure, Item, Kind, SessionId, Stat, Told, What, Zxid};

/// A node.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub data: Option<Bytes>,
    pub owner: Option<SessionId>,
    czxid: u64,
    pub mzxid: u64,
    pub pzxid: u64,
    version: i32,
    cversion: i32,
    children: u32,
    /// How many children were ever made.
    made: i32,
}

/// The tree.
#[derive(Clone, Debug)]
pub(super) struct Model {
    nodes: BTreeMap<String, Node>,
    pub sessions: BTreeSet<SessionId>,
    /// The number of the change that is under way.
    pub zxid: u64,
    /// What it has done to nodes so far.
    pub changes: Vec<(String, What)>,
}

impl Model {
    /// The tree before its first change.
    pub fn new() -> Model {
        // Those that were never made by anybody do not count as made.
        let with = |children: u32| {
            let data = Some(Bytes::new());
            Node { data, children, cversion: -children.cast_signed(), ..Node::default() }
        };
        let nodes =
            [("/", 1), ("/zookeeper", 2), ("/zookeeper/config", 0), ("/zookeeper/quota", 0)];
        Model {
            nodes: nodes.map(|(path, children)| (path.to_string(), with(children))).into(),
            sessions: BTreeSet::new(),
            zxid: 0,
            changes: Vec::new(),
        }
    }

    /// A node.
    pub fn node(&self, path: &str) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// Begins a change.
    pub fn begin(&mut self, zxid: u64) {
        self.zxid = zxid;
        self.changes.clear();
    }

    /// A session ends, and its nodes with it.
    pub fn end_session(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        let of =
            |(path, node): (&String, &Node)| (node.owner == Some(session)).then(|| path.clone());
        let paths: Vec<String> = self.nodes.iter().filter_map(of).collect();
        paths.iter().for_each(|path| self.remove(path));
    }

    /// Does all of what a client asks for its session, or nothing of it.
    pub fn act(&mut self, act: &Act, session: Option<SessionId>) -> Result<Told, Failure> {
        let is_there =
            |session| self.sessions.contains(&session) && session.0 >= begin_of(self.zxid);
        if session.is_some_and(|session| !is_there(session)) {
            return Err(Failure::SessionExpired);
        }
        match act {
            Act::One(item) => self.item(item, session),
            Act::Each(items) => {
                Ok(Told::Many(items.iter().map(|item| self.item(item, session)).collect()))
            }
            Act::All(items) => Ok(self.all(items, session)),
            Act::Close => {
                self.end_session(session.ok_or(Failure::BadArguments)?);
                Ok(Told::Done)
            }
            _ => Ok(Told::Done),
        }
    }

    fn all(&mut self, items: &[Item], session: Option<SessionId>) -> Told {
        let before = self.clone();
        let mut told = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match self.item(item, session) {
                Ok(done) => told.push(Ok(done)),
                Err(failure) => {
                    *self = before;
                    let not_done = (0..at).map(|_| Err(Failure::NotDone));
                    let not_tried = (at + 1..items.len()).map(|_| Err(Failure::NotTried));
                    return Told::Many(not_done.chain([Err(failure)]).chain(not_tried).collect());
                }
            }
        }
        Told::Many(told)
    }

    fn item(&mut self, item: &Item, session: Option<SessionId>) -> Result<Told, Failure> {
        match item {
            Item::Create { path, data, kind, sequential, .. } => {
                let owner = match kind {
                    Kind::Ephemeral => Some(session.ok_or(Failure::BadArguments)?),
                    _ => None,
                };
                self.create(path, data.as_ref(), owner, *sequential)
            }
            Item::Delete { path, version } => {
                let node = self.of_version(path, *version)?;
                if node.children > 0 {
                    return Err(Failure::NotEmpty);
                }
                self.remove(path);
                Ok(Told::Done)
            }
            Item::Set { path, data, version } => {
                self.of_version(path, *version)?;
                self.set(path, data.as_ref())
            }
            Item::Check { path, version } => self.of_version(path, *version).map(|_| Told::Done),
            Item::Exists { path, .. } => Ok(Told::Stat(self.there(path)?.stat())),
            Item::Get { path, .. } => {
                let node = self.there(path)?;
                Ok(Told::Data { data: node.data.clone(), stat: node.stat() })
            }
            Item::Children { path, .. } => {
                let stat = self.there(path)?.stat();
                Ok(Told::Children { names: self.names(path), stat })
            }
            Item::GetAcl { path } => {
                Ok(Told::Acl { acl: Acl::open(), stat: self.there(path)?.stat() })
            }
            Item::Ephemerals { prefix } => {
                let session = session.ok_or(Failure::BadArguments)?;
                let of = |(path, node): (&String, &Node)| {
                    let is_of = node.owner == Some(session) && path.starts_with(prefix);
                    is_of.then(|| path.clone())
                };
                Ok(Told::Paths(self.nodes.iter().filter_map(of).collect()))
            }
            Item::CountBelow { path } => {
                self.there(path)?;
                let below = self.nodes.keys().filter(|of| is_below(of, path)).count();
                Ok(Told::Count(below as u64))
            }
            Item::SetAcl { .. } => Err(Failure::Unimplemented),
        }
    }

    /// Sets what a node has; makes it, and its parents, if it is not there.
    pub fn put(&mut self, path: &str, data: &Bytes) -> Result<Told, Failure> {
        if self.node(path).is_some() {
            return self.set(path, Some(data));
        }
        let before = self.clone();
        let told = self.put_new(path, data);
        if told.is_err() {
            *self = before;
        }
        told
    }

    fn put_new(&mut self, path: &str, data: &Bytes) -> Result<Told, Failure> {
        let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
        for above in ends.map(|end| &path[..end]) {
            if self.node(above).is_none() {
                self.create(above, Some(&Bytes::new()), None, false)?;
            }
        }
        self.create(path, Some(data), None, false)
    }

    fn there(&self, path: &str) -> Result<&Node, Failure> {
        self.node(path).ok_or(Failure::NoNode)
    }

    fn of_version(&self, path: &str, version: Option<i32>) -> Result<&Node, Failure> {
        let node = self.there(path)?;
        let is_it = version.is_none_or(|version| version == node.version);
        is_it.then_some(node).ok_or(Failure::BadVersion)
    }

    fn names(&self, path: &str) -> Vec<String> {
        let of = |child: &String| (parent(child) == Some(path)).then(|| name(child).to_string());
        self.nodes.keys().filter_map(of).collect()
    }

    fn create(
        &mut self,
        path: &str,
        data: Option<&Bytes>,
        owner: Option<SessionId>,
        sequential: bool,
    ) -> Result<Told, Failure> {
        let above = parent(path).ok_or(Failure::Exists)?;
        let node = self.there(above)?;
        let path = match sequential {
            true => format!("{path}{:010}", node.made),
            false => path.to_string(),
        };
        if self.node(&path).is_some() {
            return Err(Failure::Exists);
        }
        if node.owner.is_some() {
            return Err(Failure::NoChildrenForEphemerals);
        }
        let zxid = self.zxid;
        if let Some(node) = self.nodes.get_mut(above) {
            node.made += 1;
            node.children += 1;
            node.cversion += 1;
            node.pzxid = zxid;
        }
        let made = Node {
            data: data.cloned(),
            owner,
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ..Node::default()
        };
        let stat = made.stat();
        self.nodes.insert(path.clone(), made);
        self.changes.push((path.clone(), What::Created));
        Ok(Told::Created { path, stat })
    }

    fn remove(&mut self, path: &str) {
        self.nodes.remove(path);
        let zxid = self.zxid;
        if let Some(above) = parent(path).and_then(|above| self.nodes.get_mut(above)) {
            above.children -= 1;
            above.cversion += 1;
            above.pzxid = zxid;
        }
        self.changes.push((path.to_string(), What::Deleted));
    }

    fn set(&mut self, path: &str, data: Option<&Bytes>) -> Result<Told, Failure> {
        let node = self.nodes.get_mut(path).ok_or(Failure::NoNode)?;
        node.data = data.cloned();
        node.version += 1;
        node.mzxid = self.zxid;
        self.changes.push((path.to_string(), What::Data));
        Ok(Told::Stat(node.stat()))
    }
}

impl Node {
    /// How it is; times are judged elsewhere.
    fn stat(&self) -> Stat {
        Stat {
            czxid: Zxid(self.czxid),
            mzxid: Zxid(self.mzxid),
            pzxid: Zxid(self.pzxid),
            version: self.version,
            cversion: self.cversion,
            ephemeral_owner: self.owner.unwrap_or_default(),
            data_length: self
                .data
                .as_ref()
                .map_or(0, |data| u32::try_from(data.len()).unwrap_or(u32::MAX)),
            children: self.children,
            ..Stat::default()
        }
    }
}

/// The path of a node's parent; the root has none.
pub(super) fn parent(path: &str) -> Option<&str> {
    match path.rfind('/')? {
        0 if path.len() > 1 => Some("/"),
        0 => None,
        at => Some(&path[..at]),
    }
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Whether a node is below another, at any depth.
pub(super) fn is_below(path: &str, above: &str) -> bool {
    let rest = path.strip_prefix(above);
    rest.is_some_and(|rest| !rest.is_empty() && (above == "/" || rest.starts_with('/')))
}

/// What was told, without the times that are in it.
pub(super) fn timeless(told: &Result<Told, Failure>) -> Result<Told, Failure> {
    let of = |stat: &Stat| Stat { ctime: 0, mtime: 0, ..*stat };
    Ok(match told.as_ref().map_err(|failure| *failure)? {
        Told::Created { path, stat } => Told::Created { path: path.clone(), stat: of(stat) },
        Told::Stat(stat) => Told::Stat(of(stat)),
        Told::Data { data, stat } => Told::Data { data: data.clone(), stat: of(stat) },
        Told::Children { names, stat } => Told::Children { names: names.clone(), stat: of(stat) },
        Told::Acl { acl, stat } => Told::Acl { acl: acl.clone(), stat: of(stat) },
        Told::Many(many) => Told::Many(many.iter().map(timeless).collect()),
        other => other.clone(),
    })
}
