//! What is asked of single nodes, out of the records of requests and of the elements of a multi.

use super::path;
use crate::zookeeper::wire::codes::{Code, opcode};
use crate::zookeeper::wire::jute::{Malformed, Reader};
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::limits::JUTE_FRAME_BYTES_MAX;
use quorate_kernel::tree::{Acl, Id, Item, Kind};

/// The longest time in milliseconds after which a node may be removed: ZooKeeper keeps it in 40
/// bits.
const TTL_MS_MAX: i64 = (1 << 40) - 1;
/// The most bytes that a node may have: an answer that holds them, with a header of 16 bytes, their
/// length and a stat of 68, is one that clients read.
const DATA_BYTES_MAX: usize = JUTE_FRAME_BYTES_MAX - 16 - 4 - 68 - 1;

impl From<Malformed> for Code {
    fn from(_: Malformed) -> Code {
        Code::MARSHALLING_ERROR
    }
}

/// An item, or why it is none; an error if its record is not whole.
pub(crate) type Read = Result<Result<Item, Code>, Malformed>;

/// The path of a node. An absent one is not bad but malformed, as in ZooKeeper.
pub(crate) fn path(reader: &mut Reader<'_>) -> Result<String, Code> {
    checked(reader.string()?)
}

/// The same, once what follows it was read too.
pub(crate) fn checked(text: Option<String>) -> Result<String, Code> {
    let text = text.ok_or(Code::MARSHALLING_ERROR)?;
    if path::is_valid(&text) { Ok(text) } else { Err(Code::BAD_ARGUMENTS) }
}

/// A version that a node must have; -1 is any. Others below 0 are asked for like any: no node has
/// them, so the engine says that the version is bad.
fn version(reader: &mut Reader<'_>) -> Result<Option<i32>, Malformed> {
    Ok(Some(reader.int()?).filter(|version| *version != -1))
}

/// What a node shall have. It is copied: a node would keep alive all that was read from the
/// connection together with it.
fn data(bytes: Option<&[u8]>) -> Result<Option<Bytes>, Code> {
    if bytes.is_some_and(|bytes| bytes.len() > DATA_BYTES_MAX) {
        return Err(Code::QUOTA_EXCEEDED);
    }
    Ok(bytes.map(Bytes::copy_from_slice))
}

/// An access list. Some clients send empty texts as absent ones.
fn acl(reader: &mut Reader<'_>) -> Result<Vec<Acl>, Malformed> {
    reader.vector(|reader| {
        let permissions = reader.int()?.cast_unsigned();
        let scheme = reader.string()?.unwrap_or_default();
        let id = reader.string()?.unwrap_or_default();
        Ok(Acl { permissions, id: Id { scheme, id } })
    })
}

/// A node to be made. All of it is read before anything of it is found to be bad: within a multi
/// the next element follows.
pub(crate) fn create(reader: &mut Reader<'_>, opcode: i32) -> Read {
    let path = reader.string()?;
    let bytes = reader.buffer()?;
    let acl = acl(reader)?;
    let flags = reader.int()?;
    let ttl_ms = if opcode == opcode::CREATE_TTL { reader.long()? } else { -1 };
    Ok(kind(opcode, flags, ttl_ms).and_then(|(kind, sequential)| {
        let path = path.ok_or(Code::MARSHALLING_ERROR)?;
        let is_valid =
            if sequential { path::is_valid_before_number(&path) } else { path::is_valid(&path) };
        if !is_valid {
            return Err(Code::BAD_ARGUMENTS);
        }
        Ok(Item::Create { path, data: data(bytes)?, acl, kind, sequential })
    }))
}

/// Which kind of node, and whether its name ends with a number.
fn kind(opcode: i32, flags: i32, ttl_ms: i64) -> Result<(Kind, bool), Code> {
    const CONTAINER: i32 = opcode::CREATE_CONTAINER;
    match (opcode, flags, ttl_ms) {
        // A container is asked for in words of its own, with or without the flag.
        (CONTAINER, 0 | 4, _) => Ok((Kind::Container, false)),
        (CONTAINER, ..) => Err(Code::BAD_ARGUMENTS),
        (_, 0 | 2, ..=-1) => Ok((Kind::Persistent, flags == 2)),
        (_, 1 | 3, ..=-1) => Ok((Kind::Ephemeral, flags == 3)),
        (_, 4, ..=-1) => Ok((Kind::Container, false)),
        (_, 5 | 6, 1..=TTL_MS_MAX) => Ok((Kind::Ttl(ttl_ms.unsigned_abs()), flags == 6)),
        _ => Err(Code::BAD_ARGUMENTS),
    }
}

/// A node to be removed.
pub(crate) fn delete(reader: &mut Reader<'_>) -> Read {
    let (path, version) = (reader.string()?, version(reader)?);
    Ok(checked(path).map(|path| Item::Delete { path, version }))
}

/// What a node shall have from now on.
pub(crate) fn set(reader: &mut Reader<'_>) -> Read {
    let (path, bytes, version) = (reader.string()?, reader.buffer()?, version(reader)?);
    Ok(checked(path).and_then(|path| Ok(Item::Set { path, data: data(bytes)?, version })))
}

/// Who may do what with a node from now on.
pub(crate) fn set_acl(reader: &mut Reader<'_>) -> Read {
    let (path, acl, version) = (reader.string()?, acl(reader)?, version(reader)?);
    Ok(checked(path).map(|path| Item::SetAcl { path, acl, version }))
}

/// A node that shall be there.
pub(crate) fn check(reader: &mut Reader<'_>) -> Read {
    let (path, version) = (reader.string()?, version(reader)?);
    Ok(checked(path).map(|path| Item::Check { path, version }))
}

/// A path, and whether what is read of it is watched.
pub(crate) fn watched(reader: &mut Reader<'_>, item: fn(String, bool) -> Item) -> Read {
    let (path, watch) = (reader.string()?, reader.boolean()?);
    Ok(checked(path).map(|path| item(path, watch)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opcode::{CREATE, CREATE_CONTAINER, CREATE_TTL, CREATE2};

    #[test]
    fn flags_say_which_kind_of_node() {
        for opcode in [CREATE, CREATE2, CREATE_TTL] {
            let all = [
                (Kind::Persistent, false),
                (Kind::Ephemeral, false),
                (Kind::Persistent, true),
                (Kind::Ephemeral, true),
                (Kind::Container, false),
            ];
            for (flags, expected) in (0..).zip(all) {
                assert_eq!(kind(opcode, flags, -1), Ok(expected));
                assert_eq!(kind(opcode, flags, 0), Err(Code::BAD_ARGUMENTS), "no time for it");
            }
            for flags in [-1, 5, 6, 7, i32::MAX, i32::MIN] {
                assert_eq!(kind(opcode, flags, -1), Err(Code::BAD_ARGUMENTS));
            }
        }
        for (flags, ttl_ms) in [(5, 1), (6, TTL_MS_MAX)] {
            let expected = (Kind::Ttl(ttl_ms as u64), flags == 6);
            assert_eq!(kind(CREATE_TTL, flags, ttl_ms), Ok(expected));
        }
        for ttl_ms in [i64::MIN, 0, TTL_MS_MAX + 1, i64::MAX] {
            assert_eq!(kind(CREATE_TTL, 5, ttl_ms), Err(Code::BAD_ARGUMENTS));
        }
        assert_eq!(kind(CREATE_CONTAINER, 4, -1), Ok((Kind::Container, false)));
        assert_eq!(kind(CREATE_CONTAINER, 0, -1), Ok((Kind::Container, false)));
        assert_eq!(kind(CREATE_CONTAINER, 1, -1), Err(Code::BAD_ARGUMENTS));
    }
}
