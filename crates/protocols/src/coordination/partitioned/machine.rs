//! The tree over several partitions as what logs replicate.

use super::command::Command;
use super::found::{Found, early, slot_of};
use super::part::{Content, Part, tree_of};
use crate::coordination::keys;
use crate::coordination::tree::{Answer, Object, Tree, without_quotas};
use crate::smr::Machine as _;
use crate::smr::partitioned::{Bucket, Execution, Machine, Partitions, Placement, Wait};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::mutant;

/// The tree over several partitions, as a type: what it holds is objects.
#[derive(Clone, Debug, PartialEq)]
pub enum Volery {}

impl Machine for Volery {
    type Command = Command;
    type Object = Object;
    type Output = Answer;

    fn bucket(key: &[u8]) -> Option<Bucket> {
        slot_of(key)
    }

    fn begin() -> impl Iterator<Item = (Bytes, Object)> {
        // A set is executed by one partition alone, and a quota would have to count it at all.
        without_quotas().flat_map(|(key, object)| {
            let (Object::Node(node), Some(path)) = (&object, keys::path(&key)) else {
                return Vec::from([(key, object)]);
            };
            let mut objects = Vec::from([
                (keys::content(&path), Object::Part(Part::Content(Content::of(node)))),
                (key, Object::Node(tree_of(node))),
            ]);
            let data = node.data.clone().map(|data| Object::Part(Part::Data(data)));
            objects.extend(data.map(|data| (keys::data(&path), data)));
            objects
        })
    }

    fn destinations(command: &Command, placement: &Placement) -> Partitions {
        let all = placement.partitions();
        if command.is_of_all() {
            return all;
        }
        if mutant!("volery_reads_anywhere") && command.sets().is_empty() {
            return all.iter().take(1).collect();
        }
        command.slots().into_iter().map(|slot| placement.of(slot)).collect()
    }

    fn early(command: &Command) -> Vec<Bytes> {
        early(command)
    }

    fn is_question(command: &Command) -> bool {
        command.is_question()
    }

    fn execute(command: &Command, on: &mut Execution<'_, Volery>) -> Result<Answer, Wait> {
        let found = Found::of(command, on)?;
        found.execute(on)
    }

    fn bytes(object: &Object) -> usize {
        Tree::bytes(object)
    }

    fn is_sound(command: &Command) -> bool {
        command.is_sound()
    }
}
