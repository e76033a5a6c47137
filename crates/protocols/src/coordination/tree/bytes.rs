//! About how many bytes things take that clients ask and are answered: what bounds rest on.

use super::command::{Answer, Change, Command, Question, Who};
use alloc::string::String;
use quorate_kernel::limits::{TRANSACTION_BYTES_MAX, TREE_COUNTED_MAX};
use quorate_kernel::tree::{Acl, Failure, Id, Item, Told, TreeReply};

/// To look at a node is as much work as so many bytes.
const COUNTED_BYTES: usize = 16;

impl Who {
    /// About how many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.ids.iter().map(|id| size_of::<Id>() + id.scheme.len() + id.id.len()).sum()
    }
}

impl Command {
    /// About how many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let bytes = match self {
            Command::One(_, item) => bytes_of(item),
            Command::All(_, items) => items.iter().map(bytes_of).sum(),
            Command::Put(_, path, data) => path.len() + data.len(),
            Command::Reap { path, .. } => path.len(),
            Command::Ask(question) => return question.bytes(),
            Command::Open { .. }
            | Command::Attach { .. }
            | Command::Expire { .. }
            | Command::Begin { .. }
            | Command::Close(_) => 0,
        };
        bytes + self.who().map_or(0, Who::bytes)
    }
}

impl Question {
    /// About how many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let all = |texts: &[String]| texts.iter().map(|text| text.len() + 4).sum::<usize>();
        match self {
            Question::One(who, item) => who.bytes() + bytes_of(item),
            Question::Each(who, items) | Question::All(who, items) => {
                who.bytes() + items.iter().map(|item| bytes_of(item) + 4).sum::<usize>()
            }
            Question::Refollow(who, refollow) => {
                let lists = [&refollow.data, &refollow.absent, &refollow.children];
                let more = [&refollow.persistent, &refollow.recursive];
                who.bytes() + lists.into_iter().chain(more).map(|list| all(list)).sum::<usize>()
            }
            Question::Sync(who) => who.bytes(),
            Question::List(from, _) => from.len(),
        }
    }
}

impl Answer {
    /// About how many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Answer::Told(TreeReply { told: Ok(told), .. }) => told.bytes(),
            Answer::Changed { changed, .. } => changed.iter().map(|(path, _)| path.len() + 8).sum(),
            Answer::Paths { paths, .. } => paths.iter().map(|path| path.len() + 4).sum(),
            _ => 0,
        }
    }

    /// How much work it was to find it, as if it were bytes. A list that was too long was made as
    /// far as there was room, and what was counted was looked at.
    #[must_use]
    pub fn work(&self) -> usize {
        let made = match self {
            Answer::Told(TreeReply { told, .. }) => work_of(told),
            _ => 0,
        };
        64 + self.bytes() + made
    }
}

/// The work beside the bytes that are told.
fn work_of(told: &Result<Told, Failure>) -> usize {
    match told {
        Ok(Told::Many(many)) => many.iter().map(work_of).sum(),
        Ok(Told::Count(count)) => COUNTED_BYTES * (*count).min(TREE_COUNTED_MAX as u64) as usize,
        Err(Failure::Quota) => TRANSACTION_BYTES_MAX,
        _ => 0,
    }
}

impl Change {
    /// About how many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Change::Node { path, .. } => path.len(),
            Change::Guarded { path, acl, .. } => {
                let ids = acl.iter().map(|acl| acl.id.scheme.len() + acl.id.id.len() + 8);
                path.len() + ids.sum::<usize>()
            }
            Change::Session { .. } => 0,
        }
    }
}

fn bytes_of(item: &Item) -> usize {
    let list = |list: &[Acl]| {
        list.iter().map(|acl| size_of::<Acl>() + acl.id.scheme.len() + acl.id.id.len()).sum()
    };
    let more: usize = match item {
        Item::Create { acl, .. } | Item::SetAcl { acl, .. } => list(acl),
        _ => 0,
    };
    item.path().len() + item.data_bytes() + more
}
