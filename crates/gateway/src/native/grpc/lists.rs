//! The lists that requests have, and how long each may be.

use crate::native::service::BATCH_KEYS_MAX;
use bytes::Bytes;
use quorate_api::v1::{self, NodeFailure};
use quorate_kernel::limits::{TRANSACTION_ITEMS_MAX, TREE_ACL_MAX};

/// The most settings that an order names.
const SETTINGS_MAX: usize = 256;

/// What an entry takes of the memory of its door, once its message is taken apart and until it is
/// done: beside the bytes that have arrived, and however few these are.
const ENTRY_BYTES: usize = 256;
/// The same of an access list, of whose entries a message may have a great many.
const ACL_BYTES: usize = 128;

const _: () = assert!(2 * size_of::<v1::Item>() <= ENTRY_BYTES);
const _: () = assert!(2 * size_of::<v1::NodeItem>() <= ENTRY_BYTES);
const _: () = assert!(2 * size_of::<Bytes>() <= ENTRY_BYTES);
const _: () = assert!(2 * size_of::<(String, String)>() <= ENTRY_BYTES);
const _: () = assert!(2 * size_of::<v1::Acl>() <= ACL_BYTES);

/// A field of a message that is a list, or has one inside.
#[derive(Debug)]
pub(super) struct Field {
    /// Its number in the schema.
    pub number: u32,
    /// Its name in the schema. No other field of the request that stands here has the same.
    pub name: &'static str,
    /// How long it may be; none of a message that is there once.
    pub list: Option<List>,
    /// The fields of its messages that are so themselves.
    pub inside: &'static [Field],
}

/// How long a list may be.
#[derive(Debug)]
pub(super) struct List {
    /// The most entries.
    pub most: usize,
    /// What each takes of the memory of the door.
    pub entry_bytes: usize,
    /// What of a tree does not allow a longer one, if it is of a tree.
    pub failure: NodeFailure,
}

const fn list(number: u32, name: &'static str, most: usize) -> Field {
    let list = List { most, entry_bytes: ENTRY_BYTES, failure: NodeFailure::Unspecified };
    Field { number, name, list: Some(list), inside: &[] }
}

const fn once(number: u32, name: &'static str, inside: &'static [Field]) -> Field {
    Field { number, name, list: None, inside }
}

const ACL: Field = {
    let failure = NodeFailure::InvalidAcl;
    let list = List { most: TREE_ACL_MAX, entry_bytes: ACL_BYTES, failure };
    Field { number: 3, name: "acl", list: Some(list), inside: &[] }
};

static BATCH: [Field; 1] = [list(2, "keys", BATCH_KEYS_MAX)];
static TRANSACTION: [Field; 1] = [list(2, "items", TRANSACTION_ITEMS_MAX)];
static NEW_NODE: [Field; 1] = [ACL];
static CREATE: [Field; 1] = [once(2, "node", &NEW_NODE)];
static NODE_ITEM: [Field; 1] = [once(1, "create", &NEW_NODE)];
static MULTI: [Field; 1] =
    [Field { inside: &NODE_ITEM, ..list(2, "items", TRANSACTION_ITEMS_MAX) }];
static SET_ACL: [Field; 1] = [ACL];
static NEW_KEYSPACE: [Field; 1] = [list(3, "settings", SETTINGS_MAX)];
static ALTERED_KEYSPACE: [Field; 1] = [list(2, "settings", SETTINGS_MAX)];

/// The lists of the requests of a call; none if they have none.
pub(super) fn of_call(path: &str) -> &'static [Field] {
    match path.strip_prefix("/quorate.v1.").unwrap_or_default() {
        "Kv/BatchGet" => &BATCH,
        "Kv/Transact" => &TRANSACTION,
        "Tree/Create" => &CREATE,
        "Tree/Multi" => &MULTI,
        "Tree/SetAcl" => &SET_ACL,
        "Admin/CreateKeyspace" => &NEW_KEYSPACE,
        "Admin/AlterKeyspace" => &ALTERED_KEYSPACE,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use prost_types::field_descriptor_proto::{Label, Type};
    use prost_types::{DescriptorProto, FileDescriptorSet};
    use quorate_api::DESCRIPTOR_SET;
    use std::collections::BTreeMap;

    type Messages<'a> = BTreeMap<String, &'a DescriptorProto>;

    /// The lists below a message: by their numbers and names, from the outermost field to the list.
    fn schema(messages: &Messages<'_>, name: &str, above: &str) -> Vec<String> {
        let mut found = Vec::new();
        for field in messages.get(name).expect("it is described").field.iter() {
            let path = format!("{above}/{} {}", field.number(), field.name());
            assert!(path.split('/').count() < 8, "{path}: messages hold themselves");
            if field.label() == Label::Repeated {
                let is_packable =
                    !matches!(field.r#type(), Type::Message | Type::String | Type::Bytes);
                assert!(!is_packable, "{path}: numbers are not counted");
                found.push(path.clone());
            }
            if field.r#type() == Type::Message {
                found.extend(schema(messages, field.type_name(), &path));
            }
        }
        found
    }

    /// The same of what is counted.
    fn counted(fields: &[Field], above: &str) -> Vec<String> {
        let mut found = Vec::new();
        for Field { number, name, list, inside } in fields {
            let path = format!("{above}/{number} {name}");
            found.extend(list.as_ref().map(|_| path.clone()));
            found.extend(counted(inside, &path));
        }
        found
    }

    #[test]
    fn every_list_of_every_request_is_counted() {
        let all = FileDescriptorSet::decode(DESCRIPTOR_SET).expect("the schema is whole");
        let mut messages = Messages::new();
        for file in &all.file {
            for message in &file.message_type {
                messages.insert(format!(".{}.{}", file.package(), message.name()), message);
                for nested in &message.nested_type {
                    let name = format!(".{}.{}.{}", file.package(), message.name(), nested.name());
                    messages.insert(name, nested);
                }
            }
        }
        let services = all.file.iter().flat_map(|file| &file.service);
        let (mut calls, mut lists) = (0, 0);
        for service in services {
            for method in &service.method {
                let path = format!("/quorate.v1.{}/{}", service.name(), method.name());
                assert!(!method.client_streaming(), "{path}: a request is one message");
                let expected = schema(&messages, method.input_type(), "");
                let found = counted(of_call(&path), "");
                assert_eq!(found, expected, "{path}");
                let mut names: Vec<&str> =
                    found.iter().filter_map(|path| path.rsplit(' ').next()).collect();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), found.len(), "{path}: two lists have one name");
                calls += 1;
                lists += found.len();
            }
        }
        assert!(calls > 20 && lists == 8, "{calls} calls with {lists} lists");
        assert!(of_call("/grpc.health.v1.Health/Check").is_empty());
    }
}
