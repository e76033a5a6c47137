//! Gets, puts and deletes without consistent quorums: plain majorities of the view that the
//! coordinator believes in, whatever views the members are in. CATS §6.4 measures against it what
//! consistent quorums cost.
//!
//! **Not linearizable**: a member that was replaced answers as if it were one, so that majorities
//! of two views need not meet; and a newcomer answers before it has the data. Neither questions nor
//! replies carry a view, a standing, a generation or who forgot, and nothing is compared. Scans,
//! reconfigurations and the removal of tombstones are what they always are.

use super::coordinator::{Operation, Phase};
use crate::linearizable::keys::position_of;
use crate::linearizable::message::{Message, Want};
use crate::linearizable::record::Record;
use crate::linearizable::{Context, Linearizable};
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;

/// The question of an operation's present phase; none for a scan.
pub(crate) fn question(id: u64, operation: &Operation) -> Option<Message> {
    let key = operation.key.clone();
    match &operation.phase {
        Phase::Read(reading) => Some(Message::BareReadA { op: id, want: reading.want(), key }),
        Phase::Write { record, .. } => {
            Some(Message::BareWriteA { op: id, key, record: record.bytes().clone() })
        }
        Phase::Page(_) | Phase::Settle(_) => None,
    }
}

impl Linearizable {
    /// The stored form of a key in the group that this node takes to hold it. None, and so no
    /// answer, if it never held the key, or if the keyspace has consistent quorums: no correct peer
    /// sends such a question there.
    fn bare_key(&self, key: &Bytes) -> Option<Bytes> {
        let view =
            self.volatile.routes.find(position_of(key)).filter(|_| self.settings.static_views);
        self.stored_key(view?.id, key)
    }

    /// A coordinator asks for the newest timestamp, or the record, of a key.
    pub(crate) fn on_bare_read(
        &mut self,
        from: Incarnation,
        (op, want): (u64, Want),
        key: &Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some(stored) = self.bare_key(key) else { return };
        let (head, record) = self.look(from, want, &stored, cx);
        let reply = Message::BareReadB { op, ts: head.ts, live: head.live, record };
        // As in `on_read`.
        if want == Want::Counter {
            cx.fx.send_after_state(from, reply);
        } else {
            cx.fx.send_after_key(from, reply, stored);
        }
    }

    /// A coordinator asks to store a record.
    pub(crate) fn on_bare_write(
        &mut self,
        from: Incarnation,
        op: u64,
        (key, record): (&Bytes, Bytes),
        cx: &mut Context<'_>,
    ) {
        let Some(stored) = self.bare_key(key) else { return };
        self.volatile.meter.served += 1;
        self.store(&stored, Record::stored(record), cx);
        cx.fx.send_after_key(from, Message::BareWriteB { op }, stored);
    }

    /// A member acknowledged.
    pub(crate) fn on_bare_write_reply(&mut self, from: Incarnation, op: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.bare_operation(op, from) else { return };
        let Phase::Write { acks, .. } = &mut operation.phase else { return };
        acks.keep(&operation.view, from, ());
        self.advance_write(op, cx);
    }

    /// The operation that a reply without a stamp is for, if its sender is one of those asked.
    pub(crate) fn bare_operation(&mut self, op: u64, from: Incarnation) -> Option<&mut Operation> {
        let is_bare = self.settings.static_views;
        let operation = self.volatile.operations.get_mut(op).filter(|_| is_bare)?;
        operation.view.index_of(from.node).is_some().then_some(operation)
    }
}
