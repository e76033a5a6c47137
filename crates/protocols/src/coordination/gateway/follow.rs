//! What a client begins to follow, here or after it was connected elsewhere.

use super::watches::How;
use crate::coordination::Coordination;
use crate::coordination::tree::Answer;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::Ticket;
use quorate_kernel::tree::{Changed, Failure, Refollow, What};

impl Coordination {
    /// A client follows a node from now on, if the answer says that it is there; whether there was
    /// room for it. Nobody who is gone follows anything.
    pub(super) fn watch(
        &mut self,
        client: Ticket,
        path: &str,
        (how, anyway): (How, bool),
        answer: &Answer,
    ) -> bool {
        let told = match answer {
            Answer::Told(reply) => &reply.told,
            _ => return true,
        };
        let follows = match told {
            Ok(_) => true,
            Err(Failure::NoNode) => anyway,
            Err(_) => false,
        };
        let is_here = self.gateway.connections.contains_key(&client);
        !follows || !is_here || self.gateway.watches.follow(client, path, how)
    }

    /// A client follows again what it had followed elsewhere; what of it has changed meanwhile.
    /// None if there was no room for all of it.
    pub(super) fn refollow(
        &mut self,
        client: Ticket,
        refollow: &Refollow,
        answer: &Answer,
    ) -> Option<Vec<Changed>> {
        let Answer::Changed { zxid, changed } = answer else { return Some(Vec::new()) };
        if !self.gateway.connections.contains_key(&client) {
            return Some(Vec::new());
        }
        let has_changed = |path: &String, is_children: bool| {
            changed.iter().any(|(of, what)| {
                let fits = match what {
                    What::Children => is_children,
                    What::Deleted => true,
                    What::Data | What::Created => !is_children,
                };
                of == path && fits
            })
        };
        let lists = [
            (&refollow.data, How::Data),
            (&refollow.absent, How::Data),
            (&refollow.children, How::Children),
            (&refollow.persistent, How::Persistent),
            (&refollow.recursive, How::Recursive),
        ];
        for (paths, how) in lists {
            let is_children = how == How::Children;
            let is_once = is_children || how == How::Data;
            for path in paths.iter().filter(|path| !(is_once && has_changed(path, is_children))) {
                if !self.gateway.watches.follow(client, path, how) {
                    return None;
                }
            }
        }
        let changed = changed.iter();
        Some(
            changed
                .map(|(path, what)| Changed { zxid: *zxid, path: path.clone(), what: *what })
                .collect(),
        )
    }
}
