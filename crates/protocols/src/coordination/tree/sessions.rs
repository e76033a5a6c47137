//! Sessions: made, moved and ended, each by a command. None ends because of a clock: who has waited
//! long enough for a client proposes the end, and says how often the session was attached then. If
//! it was attached since, the client is there, and nothing ends.

use super::ask;
use super::command::{Answer, Change, Who};
use super::machine::Tree;
use super::object::{Object, Session};
use super::step::Step;
use crate::coordination::keys;
use crate::smr::{Execution, Objects};
use core::ops::Bound;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::limits::TREE_SESSIONS_MAX;
use quorate_kernel::tree::{Failure, SessionId, Told};
use quorate_kernel::{invariant, mutant};

/// Makes a session. Its name is the change that makes it, so it is given once.
pub fn open(on: &mut Execution<'_, Tree>, gateway: Incarnation, timeout_ms: u32) -> Answer {
    let is_full = ask::meta(on).sessions >= TREE_SESSIONS_MAX;
    let mut step = Step::begin(on);
    if is_full {
        return step.abandon(Err(Failure::Quota));
    }
    let id = SessionId(step.zxid().0);
    invariant!(ask::session(step.on, id).is_none(), "no session is named like another");
    step.put_session(id, Session { gateway, attached: 1, timeout_ms });
    Answer::Open { session: id, timeout_ms, attached: 1, zxid: step.take_effect() }
}

/// Moves a session to a gateway, or has it stay there.
pub fn attach(on: &mut Execution<'_, Tree>, gateway: Incarnation, id: SessionId) -> Answer {
    let mut step = Step::begin(on);
    let Some(before) = ask::session(step.on, id) else { return Answer::Expired };
    if ask::meta(step.on).outlives(id) {
        step.end_session(id);
        step.take_effect();
        return Answer::Expired;
    }
    let session = Session { gateway, attached: before.attached + 1, ..before };
    step.put_session(id, session);
    if before.gateway != gateway {
        let gateway = before.gateway;
        step.on.tell(Change::Session { session: id, gateway, is_moved: true });
    }
    let Session { attached, timeout_ms, .. } = session;
    Answer::Open { session: id, timeout_ms, attached, zxid: step.take_effect() }
}

/// Ends a session of which nothing was heard since it was attached for so many times.
pub fn expire(on: &mut Execution<'_, Tree>, id: SessionId, attached: u64) -> Answer {
    let mut step = Step::begin(on);
    let Some(session) = ask::session(step.on, id) else { return Answer::Expired };
    if session.attached != attached && !mutant!("expire_unguarded") {
        return step.end(Ok(Told::Done));
    }
    step.end_session(id);
    step.take_effect();
    Answer::Expired
}

/// The client ends its session.
pub fn close(on: &mut Execution<'_, Tree>, who: &Who) -> Answer {
    let mut step = Step::begin(on);
    let told = match who.session {
        None => Err(Failure::BadArguments),
        Some(id) => {
            step.end_session(id);
            Ok(Told::Done)
        }
    };
    step.end(told)
}

/// The sessions that there are, ascending.
pub fn sessions(objects: &Objects<Tree>) -> impl Iterator<Item = (SessionId, &Session)> {
    let from = (Bound::Included(keys::SESSIONS), Bound::Unbounded);
    objects.range::<[u8], _>(from).map_while(|(key, object)| match object {
        Object::Session(session) => Some((keys::session_of(key)?, session)),
        _ => None,
    })
}
