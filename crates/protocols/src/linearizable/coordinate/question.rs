//! What a phase of an operation asks of a member.

use super::coordinator::{Intent, Operation, Phase};
use crate::linearizable::message::Message;

/// The question of an operation's present phase.
pub(crate) fn question(id: u64, operation: &Operation) -> Message {
    let (view, key) = (operation.view.id, operation.key.clone());
    match (&operation.phase, &operation.ask) {
        (Phase::Read(reading), _) => Message::ReadA { op: id, view, want: reading.want(), key },
        (Phase::Write { record, basis, .. }, _) => {
            Message::WriteA { op: id, view, basis: *basis, key, record: record.bytes().clone() }
        }
        (Phase::Page(_), Intent::Scan { from, limit }) => {
            Message::PageA { op: id, view, from: from.clone(), limit: *limit }
        }
        (Phase::Examine(_), Intent::Examine { token, leaver }) => {
            Message::ExamineA { op: id, view, token: *token, leaver: *leaver }
        }
        (Phase::Examine(_), _) => unreachable!("only an operator examines"),
        (Phase::Page(_), _) => unreachable!("only a scan collects pages"),
        (Phase::Settle(_), _) => unreachable!("the reads of its keys ask"),
    }
}
