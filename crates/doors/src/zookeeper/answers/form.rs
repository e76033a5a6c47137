//! What the answer to a request looks like.

use crate::zookeeper::wire::codes::{
    Code, EVENT_XID, EVENT_ZXID, SYNC_CONNECTED, event_type, opcode,
};
use crate::zookeeper::wire::jute::Frame;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::limits::JUTE_FRAME_BYTES_MAX;
use quorate_kernel::tree::{Acl, Changed, Failure, Id, Stat, Told, Zxid};

/// What follows the header of an answer if the request was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The header is all of it.
    Nothing,
    /// The same, and the connection ends.
    Goodbye,
    /// The same; the connection ends if it was not done.
    Auth,
    /// Where a node was made.
    Path,
    /// Where a node was made, and how it is.
    PathStat,
    /// How a node is.
    Stat,
    /// What a node has, and how it is.
    Data,
    /// What the children of a node are called.
    Names,
    /// The same, and how their parent is.
    NamesStat,
    /// Who may do what with a node, and how it is.
    Acl,
    /// The path that was asked with.
    Synced(String),
    /// How many nodes there are, at most as many as 31 bits count.
    Count,
    /// Where the session has ephemeral nodes.
    Paths,
    /// Who the client is.
    Ids,
    /// A code, which is 0: what was asked for is watched.
    Watched,
    /// One after the other the elements of a multi.
    Many(Vec<Element>),
}

/// One of several things that were asked together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// It was asked of the engine, with this opcode.
    Asked(i32),
    /// What became of it was known without the engine.
    Known(Code),
}

/// What is told is no answer to what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch;

impl Form {
    /// Whether an answer shows what nodes have. It can be long, and is the same if asked again.
    pub fn is_read(&self) -> bool {
        match self {
            Form::Data | Form::Names | Form::NamesStat | Form::Acl | Form::Paths => true,
            Form::Many(elements) => {
                let is_read = |element: &Element| {
                    matches!(element, Element::Asked(opcode::GET_DATA | opcode::GET_CHILDREN))
                };
                elements.iter().any(is_read)
            }
            _ => false,
        }
    }

    /// An answer of this form. One that no client would read, because it is longer than they take
    /// by themselves, is an error instead if nothing but reading was asked: a client would lose its
    /// connection, ask again and lose it again.
    pub fn answer(
        &self,
        xid: i32,
        zxid: Zxid,
        told: &Result<Told, Code>,
    ) -> Result<Frame, Mismatch> {
        let told = match told {
            Ok(told) => told,
            Err(code) => return Ok(header(xid, zxid, *code)),
        };
        let mut frame = header(xid, zxid, Code::OK);
        self.body(&mut frame, told)?;
        if self.is_read() && frame.len() >= JUTE_FRAME_BYTES_MAX {
            return Ok(header(xid, zxid, Code::MARSHALLING_ERROR));
        }
        Ok(frame)
    }

    fn body(&self, frame: &mut Frame, told: &Told) -> Result<(), Mismatch> {
        match (self, told) {
            (Form::Nothing | Form::Goodbye | Form::Auth, Told::Done) => {}
            (Form::Path, Told::Created { path, .. }) => frame.string(path),
            (Form::PathStat, Told::Created { path, stat }) => {
                frame.string(path);
                stat_of(frame, stat);
            }
            (Form::Stat, Told::Stat(stat)) => stat_of(frame, stat),
            (Form::Data, Told::Data { data, stat }) => {
                frame.shared(data.as_ref());
                stat_of(frame, stat);
            }
            (Form::Names, Told::Children { names, .. }) => frame.strings(names),
            (Form::NamesStat, Told::Children { names, stat }) => {
                frame.strings(names);
                stat_of(frame, stat);
            }
            (Form::Acl, Told::Acl { acl, stat }) => {
                acl_of(frame, acl);
                stat_of(frame, stat);
            }
            (Form::Synced(path), Told::Done) => frame.string(path),
            (Form::Count, Told::Count(count)) => {
                frame.int(i32::try_from(*count).unwrap_or(i32::MAX));
            }
            (Form::Paths, Told::Paths(paths)) => frame.strings(paths),
            (Form::Ids, Told::Ids(ids)) => ids_of(frame, ids),
            (Form::Watched, Told::Done) => frame.int(0),
            (Form::Many(elements), Told::Many(told)) => many(frame, elements, told)?,
            _ => return Err(Mismatch),
        }
        Ok(())
    }
}

/// The header of an answer; all of it if the request was not done.
pub(crate) fn header(xid: i32, zxid: Zxid, code: Code) -> Frame {
    let mut frame = Frame::new();
    frame.int(xid);
    frame.long(zxid.0.cast_signed());
    frame.int(code.0);
    frame
}

/// An event. Its header tells no zxid, as that of ZooKeeper before 3.9: what a client has seen, it
/// takes from answers alone.
pub(crate) fn event(changed: &Changed) -> Frame {
    let mut frame = Frame::new();
    frame.int(EVENT_XID);
    frame.long(EVENT_ZXID);
    frame.int(0);
    frame.int(event_type(changed.what));
    frame.int(SYNC_CONNECTED);
    frame.string(&changed.path);
    frame
}

fn stat_of(frame: &mut Frame, stat: &Stat) {
    frame.long(stat.czxid.0.cast_signed());
    frame.long(stat.mzxid.0.cast_signed());
    frame.long(stat.ctime);
    frame.long(stat.mtime);
    frame.int(stat.version);
    frame.int(stat.cversion);
    frame.int(stat.aversion);
    frame.long(stat.ephemeral_owner.0.cast_signed());
    frame.int(i32::try_from(stat.data_length).unwrap_or(i32::MAX));
    frame.int(i32::try_from(stat.children).unwrap_or(i32::MAX));
    frame.long(stat.pzxid.0.cast_signed());
}

fn acl_of(frame: &mut Frame, acl: &[Acl]) {
    frame.count(acl.len());
    for Acl { permissions, id } in acl {
        frame.int(permissions.cast_signed());
        frame.string(&id.scheme);
        frame.string(&id.id);
    }
}

/// Schemes and users: of a user with the digest of its password the name alone.
fn ids_of(frame: &mut Frame, ids: &[Id]) {
    frame.count(ids.len());
    for Id { scheme, id } in ids {
        let user = if scheme == "digest" { id.split(':').next().unwrap_or(id) } else { id };
        frame.string(scheme);
        frame.string(user);
    }
}

/// The elements, each behind its own header, and a header that ends them.
fn many(
    frame: &mut Frame,
    elements: &[Element],
    told: &[Result<Told, Failure>],
) -> Result<(), Mismatch> {
    let mut told = told.iter();
    for element in elements {
        match element {
            Element::Known(code) => undone(frame, *code),
            Element::Asked(opcode) => match told.next().ok_or(Mismatch)? {
                Ok(told) => done(frame, *opcode, told)?,
                Err(failure) => undone(frame, Code::from(*failure)),
            },
        }
    }
    if told.next().is_some() {
        return Err(Mismatch);
    }
    element_header(frame, opcode::ERROR, true, Code(-1));
    Ok(())
}

fn element_header(frame: &mut Frame, kind: i32, is_end: bool, code: Code) {
    frame.int(kind);
    frame.boolean(is_end);
    frame.int(code.0);
}

fn undone(frame: &mut Frame, code: Code) {
    element_header(frame, opcode::ERROR, false, code);
    frame.int(code.0);
}

/// An element that was done. All that makes a node and tells its stat is one type here.
fn done(frame: &mut Frame, asked: i32, told: &Told) -> Result<(), Mismatch> {
    use opcode::{CHECK, CREATE, CREATE_CONTAINER, CREATE_TTL, CREATE2, DELETE, GET_CHILDREN};
    let (kind, form) = match asked {
        CREATE => (CREATE, Form::Path),
        CREATE2 | CREATE_CONTAINER | CREATE_TTL => (CREATE2, Form::PathStat),
        DELETE | CHECK => (asked, Form::Nothing),
        opcode::SET_DATA => (asked, Form::Stat),
        GET_CHILDREN => (asked, Form::Names),
        opcode::GET_DATA => (asked, Form::Data),
        _ => return Err(Mismatch),
    };
    element_header(frame, kind, false, Code::OK);
    form.body(frame, told)
}
