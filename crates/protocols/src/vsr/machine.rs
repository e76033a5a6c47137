//! What a group replicates: a deterministic state machine that somebody else brings.

use super::action::Action;
use super::number::Op;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;

/// What a machine may read and write: its lane's bytes. A write is seen by reads from the next
/// input on.
pub struct Store<'a> {
    /// The lane's bytes.
    pub table: &'a dyn Table,
    pub(super) out: &'a mut Vec<Action>,
}

impl<'a> Store<'a> {
    /// What can be read from a table, with what is written going to a list.
    #[must_use]
    pub fn new(table: &'a dyn Table, out: &'a mut Vec<Action>) -> Store<'a> {
        Store { table, out }
    }

    /// Writes data, or deletes it.
    pub fn write(&mut self, key: Bytes, value: Option<Bytes>) {
        self.out.push(Action::Write { class: Class::Data, key, value });
    }
}

/// How far what a machine has stored goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Everything up to this entry is in it.
    pub whole: Op,
    /// Nothing of a later entry is in it.
    pub newest: Op,
}

/// One page of a copy of a machine's items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Items, each with the entry that it is of.
    pub items: Bytes,
    /// Where the next page begins; none after the last.
    pub next: Option<Bytes>,
}

/// A deterministic state machine: after the same entries each replica has the same state.
///
/// Its state is a small **head**, copied in one turn, and **items**. Pages of items are read while
/// entries are executed. A machine has one of two ways to make a right state of that:
///
/// - Copies are **fuzzy**: each item knows the entry that changed it last, and what is copied or
///   stored may be partly newer than the rest. Entries are executed again, in order, onto items
///   that already have them: an item that is of this entry or a later one is left as it is. What
///   comes out is right once the newest entry in the copy was executed; nobody is served before.
///   That is for machines whose commands change items without reading others.
/// - Copies are **of one entry**: from [`Machine::head`] on the machine keeps, beside its state,
///   what its items were then, and [`Machine::page`] tells that. It forgets it when
///   [`Machine::keep`] does not name that entry any more. What it stores is of one entry as well.
pub trait Machine {
    /// Whether it can read a command, and so execute it; the answer depends on the bytes alone, and
    /// on whose machine it is.
    /// Asked before a peer's entry is put into the log here. A member whose version cannot read
    /// what another's proposes stays behind; it never executes something else, or nothing, instead.
    fn is_command(&mut self, command: &Bytes) -> bool;

    /// Executes the entry at `op`, in order; the same op comes again after a restart and in a copy.
    /// It is one that this machine could read when it was put into the log here. If it cannot any
    /// more, an earlier version was started on the log, or the store is damaged: the node stops.
    fn apply(&mut self, op: Op, command: &Bytes, store: &mut Store<'_>);

    /// Reads back what it has stored, when the node starts. Data may be lost then, and a copy half
    /// done.
    fn load(&mut self, store: &mut Store<'_>) -> Stored;

    /// Writes down some of what is not stored yet, about `bytes_max` bytes at a time; `applied` is
    /// the last entry that was executed.
    fn store(&mut self, applied: Op, bytes_max: usize, store: &mut Store<'_>);

    /// Everything up to this entry has been handed to the store: the log may let go of it.
    fn stored(&self) -> Op;

    /// About how many bytes of what was executed are in memory alone: [`Machine::store`] has not
    /// written them down yet.
    fn unstored(&self) -> usize;

    /// The head, as of the last entry that was executed, which is `at`.
    fn head(&mut self, at: Op) -> Bytes;

    /// A page of items from a cursor on, for a copy whose head is of the entry at `at`; an empty
    /// cursor is the begin. Others may be any bytes. None if what they were then is not known here,
    /// such as after a restart: the copy is begun anew.
    fn page(&self, at: Op, cursor: &Bytes, bytes_max: usize, table: &dyn Table) -> Option<Page>;

    /// Of the copies that were begun, those whose heads are of these entries go on.
    fn keep(&mut self, _heads: &BTreeSet<Op>) {}

    /// Drops everything for a copy whose head is of the entry at `op`. At 0 the head is empty, and
    /// the copy is the empty machine.
    ///
    /// What is dropped is not missed: a copy is begun only where the log of another begins behind
    /// what is here, so a majority without this node has executed all of it. Until the copy is
    /// complete the replica notes that its state is incomplete, durably and in the same batch, and
    /// after a restart begins the copy anew.
    ///
    /// False if it cannot read the head, which a peer has sent; then nothing was changed.
    fn begin_install(&mut self, op: Op, head: &Bytes, store: &mut Store<'_>) -> bool;

    /// Takes a page of the copy. False if it cannot read that; then nothing was changed.
    fn install(&mut self, items: &Bytes, store: &mut Store<'_>) -> bool;

    /// All pages of a copy are here: removes some of what is stored of the state before, and says
    /// whether that is all. If not, it is called again in a later turn, before
    /// [`Machine::end_install`].
    fn clear_away(&mut self, _store: &mut Store<'_>) -> bool {
        true
    }

    /// The copy is complete: what is stored is whole up to the head's entry, which is `op`.
    fn end_install(&mut self, op: Op, store: &mut Store<'_>);
}
