//! What the model answers to questions.

use super::{Model, Result, allowed, parent_of, valid};
use crate::coordination::tree::{Answer, Question, Who};
use quorate_kernel::tree::{ADMIN, Acl, Failure, Item, READ, Told, TreeReply, Zxid};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

impl Model {
    pub(super) fn read(&self, who: &Who, item: &Item) -> Result {
        let readable = |path: &str, permission| {
            valid(path)?;
            let node = self.node(path)?;
            allowed(node, permission, who)?;
            Ok(node)
        };
        let below = |path: &str| if path == "/" { "/".into() } else { format!("{path}/") };
        match item {
            Item::Exists { path, .. } => {
                valid(path)?;
                Ok(Told::Stat(self.node(path)?.stat))
            }
            Item::Get { path, .. } => {
                let node = readable(path, READ)?;
                Ok(Told::Data { data: node.data.clone(), stat: node.stat })
            }
            Item::Children { path, .. } => {
                let stat = readable(path, READ)?.stat;
                let is_child = |of: &&String| *of != "/" && parent_of(of) == *path;
                let name = |of: &String| of[of.rfind('/').unwrap() + 1..].to_string();
                let mut names = self.nodes.keys().filter(is_child).map(name).collect::<Vec<_>>();
                names.sort();
                Ok(Told::Children { names, stat })
            }
            Item::GetAcl { path } => {
                let node = readable(path, READ | ADMIN)?;
                let mut acl = node.acl.clone();
                if allowed(node, ADMIN, who).is_err() {
                    for Acl { id, .. } in acl.iter_mut().filter(|acl| acl.id.scheme == "digest") {
                        id.id = format!("{}:x", &id.id[..id.id.find(':').unwrap()]);
                    }
                }
                Ok(Told::Acl { acl, stat: node.stat })
            }
            Item::Check { path, version } => {
                let node = readable(path, READ)?;
                let is_other = version.is_some_and(|version| version != node.stat.version);
                if is_other { Err(Failure::BadVersion) } else { Ok(Told::Done) }
            }
            Item::Ephemerals { prefix } => {
                let session = who.session.ok_or(Failure::BadArguments)?;
                let of = self.nodes.iter().filter(|(path, node)| {
                    node.stat.ephemeral_owner == session && path.starts_with(prefix)
                });
                Ok(Told::Paths(of.map(|(path, _)| path.clone()).collect()))
            }
            Item::CountBelow { path } => {
                readable(path, READ)?;
                let is_below = |of: &&String| *of != "/" && of.starts_with(&below(path));
                Ok(Told::Count(self.nodes.keys().filter(is_below).count() as u64))
            }
            _ => Err(Failure::BadArguments),
        }
    }

    pub fn ask(&self, question: &Question) -> Answer {
        let told = |told| Answer::Told(TreeReply { zxid: Zxid(self.zxid), told });
        match question {
            Question::One(who, item) => told(self.admit(who).and_then(|()| self.read(who, item))),
            Question::Each(who, items) => told(
                self.admit(who)
                    .map(|()| Told::Many(items.iter().map(|item| self.read(who, item)).collect())),
            ),
            Question::All(who, items) => told(
                self.admit(who)
                    .map(|()| self.clone().all(items, |model, item| model.read(who, item)).1),
            ),
            other => panic!("the tests do not ask a model for {other:?}"),
        }
    }
}
