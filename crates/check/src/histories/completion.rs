//! What clients were told.

use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::operation::{Cursor, Operation, Outcome, Refusal};
use quorate_kernel::transaction::{Item, ItemOutcome};
use quorate_kernel::tree::TreeReply;

/// What a client was told about an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// A get returned this; `None` says that the key is absent.
    Value(Option<Bytes>),
    /// A put was acknowledged.
    Written,
    /// A delete was acknowledged. What its read phase saw is recorded but not judged.
    Deleted {
        /// Whether the read phase saw a value.
        existed: bool,
    },
    /// A page of a scan.
    Page {
        /// The keys of the page.
        keys: Vec<Bytes>,
        /// Where to continue; `None` at the end.
        next: Option<Cursor>,
    },
    /// A transaction was done; what each of its items was told.
    Transacted(Vec<ItemOutcome>),
    /// A transaction was not done: what this item of it checks did not hold.
    Unmet {
        /// Which item, from 0.
        item: usize,
    },
    /// A transaction, or a write of one key, was done; its client knows only that, because it has
    /// asked later how it ended.
    Committed,
    /// A tree has answered.
    Tree(TreeReply),
    /// The operation was refused with the promise that nothing was changed.
    Refused,
    /// Nobody knows: a write may have been applied, or may yet be, at any later time.
    Unknown,
}

impl From<Outcome> for Completion {
    fn from(outcome: Outcome) -> Completion {
        match outcome {
            Outcome::Values { values, .. } => {
                Completion::Value(values.into_one().expect("a read of one value shows one"))
            }
            Outcome::Written { .. } => Completion::Written,
            Outcome::Deleted { existed, .. } => Completion::Deleted { existed },
            Outcome::Page { keys, next } => Completion::Page { keys, next },
            Outcome::Transacted(items) => Completion::Transacted(items),
            Outcome::Tree(reply) => Completion::Tree(*reply),
            Outcome::Refused(Refusal::Unmet { item }) => Completion::Unmet { item },
            Outcome::Refused(refusal) if refusal.may_have_applied() => Completion::Unknown,
            Outcome::Refused(_) => Completion::Refused,
            // How a transaction ended completes that one; orders of operators and watches are no
            // part of a history.
            other => unreachable!("an operation on keys ended as {other:?}"),
        }
    }
}

impl Completion {
    /// Whether an operation of this kind can end like this.
    #[must_use]
    pub fn fits(&self, operation: &Operation) -> bool {
        match self {
            Completion::Value(_) => matches!(operation, Operation::Get { .. }),
            Completion::Written => matches!(operation, Operation::Put { .. }),
            Completion::Deleted { .. } => matches!(operation, Operation::Delete { .. }),
            Completion::Page { .. } => matches!(operation, Operation::Scan { .. }),
            Completion::Transacted(told) => {
                let fits = |items: &[Item]| {
                    let mut both = items.iter().zip(told);
                    items.len() == told.len() && both.all(|(item, told)| item.takes(told))
                };
                matches!(operation, Operation::Transact { items, .. } if fits(items))
            }
            Completion::Unmet { item } => {
                let is_check =
                    |items: &[Item]| matches!(items.get(*item), Some(Item::Check { .. }));
                matches!(operation, Operation::Transact { items, .. } if is_check(items))
            }
            Completion::Committed => operation.is_write(),
            Completion::Tree(_) => matches!(operation, Operation::Tree(_)),
            Completion::Refused | Completion::Unknown => true,
        }
    }

    /// Whether it says that nothing was changed.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Completion::Refused | Completion::Unmet { .. })
    }
}
