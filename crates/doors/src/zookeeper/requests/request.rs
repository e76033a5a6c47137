//! One request out of its frame: what it asks of the engine, or what is known without asking.

use super::connect::zxid;
use super::items::{self, checked, path};
use super::multi;
use crate::zookeeper::answers::form::Form;
use crate::zookeeper::wire::codes::{Code, opcode};
use crate::zookeeper::wire::jute::{Malformed, Reader};
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::tree::{Act, Followed, Item, Refollow, Told};

/// A request: what its answer is known by, and what is done for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The number that the client has given it. Pings, sign-ons and watches that are set again
    /// have numbers of their own below 0; whatever came is echoed.
    pub xid: i32,
    /// What is done.
    pub plan: Plan,
    /// What the answer looks like.
    pub form: Form,
}

/// What is done for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// This is asked of the engine.
    Ask(Act),
    /// This is answered, once it is its turn.
    Answer(Result<Told, Code>),
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// Not even its header is whole. All else that is wrong with it is for its client to know.
    pub fn read(frame: &[u8]) -> Result<Request, Malformed> {
        let mut reader = Reader::new(frame);
        let (xid, opcode) = (reader.int()?, reader.int()?);
        let (plan, form) = match parse(opcode, &mut reader) {
            Ok(parsed) => parsed,
            Err(code) if opcode == opcode::AUTH => (Plan::Answer(Err(code)), Form::Auth),
            Err(code) => (Plan::Answer(Err(code)), Form::Nothing),
        };
        Ok(Request { xid, plan, form })
    }
}

fn parse(opcode: i32, reader: &mut Reader<'_>) -> Result<(Plan, Form), Code> {
    let (act, form) = match opcode {
        opcode::CREATE => (Act::One(items::create(reader, opcode)??), Form::Path),
        opcode::CREATE2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => {
            (Act::One(items::create(reader, opcode)??), Form::PathStat)
        }
        opcode::DELETE => (Act::One(items::delete(reader)??), Form::Nothing),
        opcode::SET_DATA => (Act::One(items::set(reader)??), Form::Stat),
        opcode::SET_ACL => (Act::One(items::set_acl(reader)??), Form::Stat),
        opcode::EXISTS => {
            let exists = |path, watch| Item::Exists { path, watch };
            (Act::One(items::watched(reader, exists)??), Form::Stat)
        }
        opcode::GET_DATA => {
            let get = |path, watch| Item::Get { path, watch };
            (Act::One(items::watched(reader, get)??), Form::Data)
        }
        opcode::GET_CHILDREN | opcode::GET_CHILDREN2 => {
            let children = |path, watch| Item::Children { path, watch };
            let has_stat = opcode == opcode::GET_CHILDREN2;
            let form = if has_stat { Form::NamesStat } else { Form::Names };
            (Act::One(items::watched(reader, children)??), form)
        }
        opcode::GET_ACL => (Act::One(Item::GetAcl { path: path(reader)? }), Form::Acl),
        opcode::GET_ALL_CHILDREN_NUMBER => {
            (Act::One(Item::CountBelow { path: path(reader)? }), Form::Count)
        }
        opcode::GET_EPHEMERALS => {
            (Act::One(Item::Ephemerals { prefix: prefix(reader)? }), Form::Paths)
        }
        opcode::SYNC => {
            let path = path(reader)?;
            (Act::Sync { path: path.clone() }, Form::Synced(path))
        }
        opcode::PING => (Act::Ping, Form::Nothing),
        opcode::WHO_AM_I => (Act::WhoAmI, Form::Ids),
        opcode::CLOSE_SESSION => (Act::Close, Form::Goodbye),
        opcode::AUTH => (authenticate(reader)?, Form::Auth),
        opcode::SET_WATCHES | opcode::SET_WATCHES2 => {
            (Act::Refollow(refollow(reader, opcode)?), Form::Nothing)
        }
        opcode::ADD_WATCH => (follow(reader)?, Form::Watched),
        opcode::CHECK_WATCHES | opcode::REMOVE_WATCHES => {
            (unfollow(reader, opcode == opcode::CHECK_WATCHES)?, Form::Nothing)
        }
        opcode::MULTI => return multi::writes(reader),
        opcode::MULTI_READ => return multi::reads(reader),
        opcode::RECONFIG => return Err(Code::RECONFIG_DISABLED),
        _ => return Err(Code::UNIMPLEMENTED),
    };
    Ok((Plan::Ask(act), form))
}

/// The beginning of paths; all begin with the root.
fn prefix(reader: &mut Reader<'_>) -> Result<String, Code> {
    let text = reader.string()?.filter(|text| !text.trim().is_empty());
    Ok(text.unwrap_or_else(|| String::from("/")))
}

/// Who the client says it is. What cannot be read shows nothing.
fn authenticate(reader: &mut Reader<'_>) -> Result<Act, Code> {
    let mut read = || {
        let _kind = reader.int()?;
        let scheme = reader.string()?.ok_or(Malformed)?;
        let credential = Bytes::copy_from_slice(reader.buffer()?.unwrap_or_default());
        Ok(Act::Authenticate { scheme, credential })
    };
    read().map_err(|Malformed| Code::AUTH_FAILED)
}

fn refollow(reader: &mut Reader<'_>, opcode: i32) -> Result<Refollow, Code> {
    let seen = zxid(reader.long()?);
    let mut paths = || reader.vector(path);
    let (data, absent, children): (Vec<String>, _, _) = (paths()?, paths()?, paths()?);
    let has_more = opcode == opcode::SET_WATCHES2;
    let (persistent, recursive) =
        if has_more { (paths()?, paths()?) } else { (Vec::new(), Vec::new()) };
    Ok(Refollow { seen, data, absent, children, persistent, recursive })
}

fn follow(reader: &mut Reader<'_>) -> Result<Act, Code> {
    let (path, mode) = (reader.string()?, reader.int()?);
    let recursive = match mode {
        0 => false,
        1 => true,
        _ => return Err(Code::MARSHALLING_ERROR),
    };
    Ok(Act::Follow { path: checked(path)?, recursive })
}

fn unfollow(reader: &mut Reader<'_>, only_check: bool) -> Result<Act, Code> {
    let (path, kind) = (reader.string()?, reader.int()?);
    let kind = match kind {
        1 => Followed::Children,
        2 => Followed::Data,
        3 => Followed::Any,
        4 => Followed::Persistent,
        5 => Followed::Recursive,
        _ => return Err(Code::MARSHALLING_ERROR),
    };
    Ok(Act::Unfollow { path: checked(path)?, kind, only_check })
}
