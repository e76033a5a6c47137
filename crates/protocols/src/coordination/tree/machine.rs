//! The tree as what a log replicates.

use super::command::{Answer, Change, Command, Question, Who};
use super::life::LIFE_MAX;
use super::object::{Meta, Node, Object};
use super::step::Step;
use super::write::SPECIAL;
use super::{acl, ask, life, reap, sessions, write};
use crate::coordination::keys;
use crate::coordination::partitioned::Part;
use crate::smr::{Execution, Machine};
use alloc::sync::Arc;
use bytes::Bytes;
use quorate_kernel::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_ITEMS_MAX, TREE_IDS_MAX};
use quorate_kernel::mutant;
use quorate_kernel::path::Path;
use quorate_kernel::tree::{Acl, Item, SessionId, TreeReply, Zxid};

/// The most bytes of a question's answer that the state keeps as they are: those of a stat alone.
const KEPT_BYTES_MAX: usize = 64;
/// The most bytes of a question that goes ahead of a command.
const AHEAD_BYTES_MAX: usize = 4 * 1024;

/// The tree, as a type: what it holds is objects.
#[derive(Debug)]
pub enum Tree {}

impl Machine for Tree {
    type Command = Command;
    type Object = Object;
    type Output = Answer;
    type Change = Change;

    fn begin() -> impl Iterator<Item = (Bytes, Object)> {
        // As in ZooKeeper everybody may limit something, until somebody sets the list.
        first(None)
    }

    fn execute(command: &Command, on: &mut Execution<'_, Tree>) -> Answer {
        if let Some(who) = command.who()
            && let Err(failure) = ask::admit(on, who)
        {
            let zxid = ask::meta(on).zxid;
            return Answer::Told(TreeReply { zxid, told: Err(failure) });
        }
        match command {
            Command::One(who, item) => {
                let mut step = Step::begin(on);
                let told = write::item(&mut step, who, item);
                step.end(told)
            }
            Command::All(who, items) => {
                let mut step = Step::begin(on);
                let (is_done, told) = ask::all(items, |item| write::item(&mut step, who, item));
                let is_done = is_done || mutant!("tree_all_keeps_a_part");
                if is_done { step.end(Ok(told)) } else { step.abandon(Ok(told)) }
            }
            Command::Put(who, path, data) => {
                let mut step = Step::begin(on);
                let told = write::put(&mut step, who, path, data);
                step.end(told)
            }
            Command::Open { gateway, timeout_ms } => sessions::open(on, *gateway, *timeout_ms),
            Command::Attach { gateway, session } => sessions::attach(on, *gateway, *session),
            Command::Expire { session, attached } => sessions::expire(on, *session, *attached),
            Command::Close(who) => sessions::close(on, who),
            Command::Reap { path, seen } => reap::reap(on, path, *seen),
            Command::Begin { life } => life::begin(on, *life),
            Command::Ask(question) => ask::ask(question, on),
        }
    }

    /// Of a question's answer, if it is large, no more than that it was found: what clients read
    /// does not pile up in the state.
    fn kept(command: &Command, answer: &Answer) -> Option<(Answer, usize)> {
        let bytes = answer.bytes();
        let is_large = matches!(command, Command::Ask(_)) && bytes > KEPT_BYTES_MAX;
        is_large.then_some((Answer::Lost, bytes))
    }

    fn bytes(object: &Object) -> usize {
        let held = match object {
            Object::Node(node) => node.held(),
            Object::Part(Part::Data(data)) => data.len(),
            _ => 0,
        };
        size_of::<Object>() + held
    }

    fn change_bytes(change: &Change) -> usize {
        size_of::<Change>() + change.bytes()
    }

    /// What is merely wrong is executed, and answered. What is not sound no gateway makes of
    /// anything that a client asks.
    fn is_sound(command: &Command) -> bool {
        let is_sound = match command {
            Command::One(_, item) => item.is_write(),
            Command::All(_, items) => {
                let is_of_it = |item: &Item| item.is_write() || matches!(item, Item::Check { .. });
                items.len() <= TRANSACTION_ITEMS_MAX && items.iter().all(is_of_it)
            }
            // Numbers of its changes would not fit.
            Command::Begin { life } => *life <= LIFE_MAX,
            Command::Ask(question) => question.may_go_ahead(),
            _ => true,
        };
        is_sound && command.is_bounded()
    }
}

/// What is there before the first command of a tree in which nobody can limit anything.
pub fn without_quotas() -> impl Iterator<Item = (Bytes, Object)> {
    first(acl::read_only())
}

/// What is there before the first command. The list says who may set limits.
fn first(quotas: Option<Arc<[Acl]>>) -> impl Iterator<Item = (Bytes, Object)> {
    // As in ZooKeeper these children were never made: they do not count for sequential names.
    let with = |children, acl| Node { children, acl, ..Node::made(Zxid(0), 0) };
    let [root, zookeeper, config, quota] =
        SPECIAL.map(|path| Path::of(path).expect("each of them is a path"));
    let nodes = [
        (root, with(1, None)),
        (zookeeper, with(2, acl::read_only())),
        (config, with(0, acl::read_only())),
        (quota, with(0, quotas)),
    ];
    let bytes = nodes.iter().map(|(path, node)| node.bytes(*path)).sum();
    let meta = Meta { nodes: nodes.len() as u64, bytes, ..Meta::default() };
    let nodes = nodes.into_iter().map(|(path, node)| (keys::node(path), Object::Node(node)));
    nodes.chain([(keys::META, Object::Meta(meta))])
}

impl Command {
    /// One that does nothing: no session has this name.
    pub const NOTHING: Command = Command::Expire { session: SessionId(0), attached: 0 };

    /// Whether it is no larger than what a gateway makes.
    pub(in crate::coordination) fn is_bounded(&self) -> bool {
        let is_known = self.who().is_none_or(|who| who.ids.len() <= TREE_IDS_MAX);
        is_known && self.bytes() <= TRANSACTION_BYTES_MAX
    }

    /// Whose it is; none of what hosts ask for themselves.
    #[must_use]
    pub fn who(&self) -> Option<&Who> {
        match self {
            Command::One(who, _)
            | Command::All(who, _)
            | Command::Put(who, ..)
            | Command::Close(who) => Some(who),
            Command::Ask(question) => question.who(),
            Command::Open { .. }
            | Command::Attach { .. }
            | Command::Expire { .. }
            | Command::Reap { .. }
            | Command::Begin { .. } => None,
        }
    }
}

impl Question {
    /// Who asks; nobody if it is for who knows keys alone.
    #[must_use]
    pub fn who(&self) -> Option<&Who> {
        match self {
            Question::One(who, _)
            | Question::Each(who, _)
            | Question::All(who, _)
            | Question::Refollow(who, _)
            | Question::Sync(who) => Some(who),
            Question::List(..) => None,
        }
    }

    /// Whether it may go ahead of a command, as one. All members look for the answer, so it is one
    /// of a single node, and no list.
    #[must_use]
    pub fn may_go_ahead(&self) -> bool {
        let is_short = match self {
            Question::One(_, item) => matches!(
                item,
                Item::Exists { .. } | Item::Get { .. } | Item::GetAcl { .. } | Item::Check { .. }
            ),
            Question::Sync(_) => true,
            _ => false,
        };
        is_short && self.bytes() <= AHEAD_BYTES_MAX
    }
}
