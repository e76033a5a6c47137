//! What a client has seen of a key: a context, and the names of the writes in it that have any.
//!
//! A context tells by dots what is in the past. But a write that was sent again has two of them,
//! and a client may have read the one at a host that was lost before anybody else heard of it. Of
//! the other dot nobody could say then that it is the same write ([`super::twins`]), and what the
//! client replaces would stay, or be done once more. So a context carries names with their dots,
//! and who writes with it tells them: its replica takes such a dot for seen, as what it stores
//! covers it, and passes the name on as that of any other dot.

use super::message::NAMES_BYTES_MAX;
use crate::dots::context::CausalContext;
use crate::dots::dot::Dot;
use crate::dots::object::Object;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::causal::WriteId;
use quorate_kernel::mutant;

/// How many names one context carries at most.
const NAMES_MAX: usize = 64;

/// How many bytes one name and its dot have at most in the head of a message.
const NAME_BYTES_MAX: usize = 64;

const _: () = assert!(NAMES_MAX * NAME_BYTES_MAX <= NAMES_BYTES_MAX);

/// What a client has seen of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// What is in the past.
    pub context: CausalContext,
    /// The names of writes in it, by dots that it covers.
    pub names: BTreeMap<Dot, WriteId>,
}

impl Seen {
    /// What who reads this object sees.
    pub(super) fn of(object: &Object) -> Seen {
        let versions = object.versions.iter();
        let there = versions.filter_map(|(dot, version)| Some((*dot, version.id?)));
        let gone = object.replaced.iter().map(|(dot, name)| (*dot, *name));
        Seen::new(object.context.clone(), there.chain(gone))
    }

    /// A context with these names, but for those that it does not cover.
    pub(super) fn new(
        context: CausalContext,
        names: impl IntoIterator<Item = (Dot, WriteId)>,
    ) -> Seen {
        let covered = names.into_iter().filter(|(dot, _)| context.covers(*dot));
        let names = covered.take(if mutant!("nameless_contexts") { 0 } else { NAMES_MAX });
        Seen { names: names.collect(), context }
    }

    /// The names as they are told.
    pub(super) fn tell_names(&self) -> Vec<(Dot, WriteId)> {
        self.names.iter().map(|(dot, name)| (*dot, *name)).collect()
    }
}

impl From<CausalContext> for Seen {
    fn from(context: CausalContext) -> Seen {
        Seen { context, ..Seen::default() }
    }
}
