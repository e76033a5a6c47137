//! The label values of metrics: bounded sets, each value the word the manual uses.

use quorate_kernel::operation::{Operation, Outcome, Refusal};

macro_rules! labels {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $name { $($(#[$value_doc])* $value,)* }

        impl $name {
            /// Every value, in the order of their numbers.
            pub const ALL: &[$name] = &[$($name::$value,)*];

            /// The label text.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $($name::$value => $text,)* }
            }
        }
    };
}

labels! {
    /// What was asked: the label `op`.
    Kind {
        /// Read a key.
        Get = "get",
        /// Set a key.
        Put = "put",
        /// Remove a key.
        Delete = "delete",
        /// List keys.
        Scan = "scan",
        /// Read and write several keys in one step.
        Transact = "transact",
        /// Something with a tree, or with a session.
        Tree = "tree",
        /// Tell how a transaction ended.
        HowEnded = "how_ended",
    }
}

labels! {
    /// How an operation ended: the label `outcome`.
    Ending {
        /// Done.
        Ok = "ok",
        /// No quorum answered in time; nothing was changed.
        NoQuorum = "no_quorum",
        /// The deadline passed while a write was on its way; it may have been applied.
        Unknown = "unknown",
        /// Refused for what it asked: unsupported, too large, or a check that does not hold.
        Refused = "refused",
        /// Refused for the state of the node: too much in hand, or stopping.
        Unavailable = "unavailable",
    }
}

labels! {
    /// Why something was turned away before it became an operation: the label `reason`.
    RejectReason {
        /// A client over the limit of connections.
        Clients = "clients",
        /// Bytes on a client's connection that are no command.
        Protocol = "protocol",
        /// A frame of a peer that could not be decoded, or that no correct peer sends.
        Frame = "frame",
        /// A frame of a peer that would have added to writes for which the disk is too slow.
        Backlog = "backlog",
        /// A message of this host that is longer than any may be. It was not sent.
        Unsent = "unsent",
        /// A connection to the cluster door without the secret, of another cluster, or of a host in
        /// an older start than was seen.
        Handshake = "handshake",
        /// A client that did not read its replies.
        SlowClient = "slow_client",
        /// A command for which the budget of all clients had no room.
        Memory = "memory",
        /// A command that was begun and not finished in time.
        Unfinished = "unfinished",
    }
}

impl Kind {
    /// What this operation asks.
    #[must_use]
    pub fn of(operation: &Operation) -> Kind {
        match operation {
            Operation::Get { .. } => Kind::Get,
            Operation::Put { .. } => Kind::Put,
            Operation::Delete { .. } => Kind::Delete,
            Operation::Scan { .. } => Kind::Scan,
            Operation::Transact { .. } => Kind::Transact,
            Operation::Tree(_) => Kind::Tree,
            Operation::HowEnded { .. } => Kind::HowEnded,
        }
    }
}

impl Ending {
    /// How an operation with this outcome ended.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Ending {
        match outcome {
            Outcome::Refused(refusal) => match refusal {
                Refusal::NoQuorum { .. } | Refusal::Minority { .. } | Refusal::NoRoute => {
                    Ending::NoQuorum
                }
                Refusal::OutcomeUnknown
                | Refusal::OutcomeOpen { .. }
                | Refusal::OutcomeForgotten
                | Refusal::NameForgotten
                | Refusal::CatalogUnknown => Ending::Unknown,
                Refusal::Lacking(_)
                | Refusal::Unsupported
                | Refusal::TooLarge { .. }
                | Refusal::TooMany { .. }
                | Refusal::Unmet { .. }
                | Refusal::Value { .. }
                | Refusal::Context(_)
                | Refusal::Token(_)
                | Refusal::Siblings { .. }
                | Refusal::NoSession
                | Refusal::Node(_)
                | Refusal::Membership { .. }
                | Refusal::Catalog(_) => Ending::Refused,
                Refusal::Overloaded | Refusal::TooSlow | Refusal::Stopping | Refusal::NotOpen => {
                    Ending::Unavailable
                }
            },
            _ => Ending::Ok,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::operation::Cursor;

    #[test]
    fn numbers_index_the_list_of_all_values() {
        assert!(Kind::ALL.iter().enumerate().all(|(index, kind)| *kind as usize == index));
        assert!(Ending::ALL.iter().enumerate().all(|(index, ending)| *ending as usize == index));
        assert_eq!(Kind::of(&Operation::Scan { from: Cursor::at(0), limit: 1 }).text(), "scan");
    }

    #[test]
    fn refusals_end_apart_from_unknown_outcomes() {
        let refused = |refusal| Ending::of(&Outcome::Refused(refusal));
        assert_eq!(refused(Refusal::NoQuorum { reached: 1, needed: 2 }), Ending::NoQuorum);
        assert_eq!(refused(Refusal::OutcomeUnknown), Ending::Unknown);
        assert_eq!(refused(Refusal::Overloaded), Ending::Unavailable);
        assert_eq!(refused(Refusal::Unsupported), Ending::Refused);
        assert_eq!(Ending::of(&Outcome::written()), Ending::Ok);
    }
}
