//! What clients ask of a tree over several partitions: the commands that the tree of one partition
//! is tested with, and questions.

use super::super::{Command, Volery, slot};
use crate::coordination::tree::tests::random::{PATHS, Source};
use crate::coordination::tree::tests::world::{
    anybody, children, create, data, delete, ephemeral, gateway, get, sequential, set,
};
use crate::coordination::tree::{self, Answer, Question, Who};
use crate::smr::partitioned::Bucket;
use crate::testing::partitions::Load;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::rng::Rng;
use quorate_kernel::tree::{Item, SessionId, Stat, Told, TreeReply, Zxid};
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

/// How many nodes it takes for ones that may be reaped.
const DUE_MAX: usize = 6;

/// Clients that tell each other what they hear.
pub struct Clients {
    source: Source,
    sessions: BTreeMap<SessionId, Incarnation>,
    /// Nodes that may be reaped some day, as they were seen last.
    due: Vec<(String, Zxid)>,
    /// The newest change that each has seen, and that any has.
    seen: BTreeMap<usize, Zxid>,
    newest: Zxid,
}

impl Clients {
    pub fn new(seed: u64) -> Clients {
        let (sessions, due, seen) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        Clients { source: Source::new(seed), sessions, due, seen, newest: Zxid(0) }
    }

    /// What mostly succeeds.
    fn usual(&mut self, rng: &mut Rng) -> tree::Command {
        let known: Vec<(SessionId, Incarnation)> =
            self.sessions.iter().map(|(id, at)| (*id, *at)).collect();
        let Some((session, at)) = rng.pick(&known).copied() else {
            return tree::Command::Open { gateway: gateway(1 + rng.below(3)), timeout_ms: 10 };
        };
        let who = Who { gateway: at, session: Some(session), ..anybody() };
        let path = *rng.pick(&PATHS[1..9]).expect("there are paths");
        let other = *rng.pick(&PATHS[1..9]).expect("there are paths");
        match rng.below(14) {
            0 => tree::Command::One(who, create(path, "made")),
            1 => tree::Command::One(who, ephemeral(path)),
            2 => tree::Command::One(who, sequential(create("/n", ""))),
            3 => tree::Command::One(who, delete(path, None)),
            4 => {
                tree::Command::All(who, Vec::from([set(path, "both", None), set(other, "", None)]))
            }
            5 => {
                let made = sequential(create("/n", "made"));
                tree::Command::All(who, Vec::from([set(path, "with", None), made]))
            }
            6 => tree::Command::Put(who, path.into(), data("put")),
            7 => tree::Command::Ask(Question::Each(who, Vec::from([get(path), get(other)]))),
            8 => tree::Command::Ask(Question::One(who, get(path))),
            9 => tree::Command::Close(who),
            10 => tree::Command::Ask(Question::One(who, children("/"))),
            _ => tree::Command::One(who, set(path, "set", None)),
        }
    }

    fn hears_of(&mut self, path: &str, stat: &Stat) {
        self.due.retain(|(of, _)| of != path);
        self.due.insert(0, (path.into(), stat.mzxid.max(stat.pzxid)));
        self.due.truncate(DUE_MAX);
    }

    /// How nodes are, as far as an answer says.
    fn hears_told(&mut self, item: Option<&Item>, told: &Told) {
        match (item, told) {
            (_, Told::Created { path, stat }) => self.hears_of(path, stat),
            (Some(item), Told::Stat(stat) | Told::Data { stat, .. }) => {
                self.hears_of(item.path(), stat);
            }
            _ => {}
        }
    }

    fn hears_session(&mut self, command: &tree::Command, answer: &Answer) {
        match (command, answer) {
            (
                tree::Command::Open { gateway, .. } | tree::Command::Attach { gateway, .. },
                Answer::Open { session, .. },
            ) => _ = self.sessions.insert(*session, *gateway),
            (
                tree::Command::Attach { session, .. } | tree::Command::Expire { session, .. },
                Answer::Expired,
            ) => _ = self.sessions.remove(session),
            (tree::Command::Close(who), Answer::Told(TreeReply { told: Ok(_), .. })) => {
                self.sessions.retain(|id, _| Some(*id) != who.session);
            }
            _ => {}
        }
    }
}

impl Load<Volery> for Clients {
    fn asks(&mut self, client: usize, now_ms: u64, rng: &mut Rng) -> Command {
        let (sessions, due) = (self.sessions.clone(), self.due.clone());
        self.source.knows(sessions.into_iter(), due, self.newest);
        let command = match rng.below(10) {
            0..3 => self.source.command(),
            3..6 => tree::Command::Ask(self.source.question()),
            _ => self.usual(rng),
        };
        let seen = self.seen.get(&client).copied().unwrap_or_default();
        // Clocks of gateways differ.
        Command { now_ms: (now_ms + rng.below(40)).saturating_sub(20), seen, command }
    }

    fn hears(&mut self, client: usize, command: &Command, answer: &Answer) {
        self.hears_session(&command.command, answer);
        let zxid = match answer {
            Answer::Told(TreeReply { zxid, .. })
            | Answer::Open { zxid, .. }
            | Answer::Changed { zxid, .. } => *zxid,
            _ => return,
        };
        assert!(zxid >= command.seen, "a session is answered nothing older than it has seen");
        let seen = self.seen.entry(client).or_default();
        *seen = zxid.max(*seen);
        self.newest = self.newest.max(zxid);
        let Answer::Told(TreeReply { told: Ok(told), .. }) = answer else { return };
        match &command.command {
            tree::Command::One(_, item) | tree::Command::Ask(Question::One(_, item)) => {
                self.hears_told(Some(item), told);
            }
            _ => self.hears_told(None, told),
        }
    }

    fn last(&mut self, now_ms: u64) -> Command {
        let reads = PATHS.iter().map(|path| get(path)).collect();
        let command = tree::Command::Ask(Question::Each(anybody(), reads));
        Command { now_ms, seen: Zxid(0), command }
    }

    fn buckets(&self) -> Vec<Bucket> {
        PATHS.iter().map(|path| slot(path)).collect()
    }
}
