//! What a phase of an operation asks of a member.

use super::coordinator::{Ask, Operation, Phase};
use crate::linearizable::message::Message;

/// The question of an operation's present phase.
pub(crate) fn question(id: u64, operation: &Operation, is_bare: bool) -> Message {
    let (view, key) = (operation.view.id, operation.key.clone());
    if is_bare && let Some(question) = super::bare::question(id, operation) {
        return question;
    }
    match (&operation.phase, &operation.ask) {
        (Phase::Read(reading), _) => Message::ReadA { op: id, view, want: reading.want(), key },
        (Phase::Write { record, basis, .. }, _) => {
            Message::WriteA { op: id, view, basis: *basis, key, record: record.bytes().clone() }
        }
        (Phase::Page(_), Ask::Scan { from, limit }) => {
            Message::PageA { op: id, view, from: from.clone(), limit: *limit }
        }
        (Phase::Page(_), _) => unreachable!("only a scan collects pages"),
        (Phase::Settle(_), _) => unreachable!("the reads of its keys ask"),
    }
}
