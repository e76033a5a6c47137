//! What the places of operations say by themselves: time goes on, for everybody and for each
//! session.

use super::evidence::AllEvidence;
use super::facts::{Facts, Place, place};
use super::lives::begin_of;
use super::record::Event;
use super::replay::zxid_of;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::time::Span;
use quorate_kernel::tree::SessionId;

/// What is wrong: which operations show it, and why.
pub(super) type Wrong = (Vec<usize>, String);

/// Looks whether the order of zxids is that of time, and that in which sessions have asked.
pub(super) fn check(facts: &Facts<'_>, evidence: &AllEvidence) -> Result<(), Wrong> {
    in_real_time(facts)?;
    in_sessions(facts)?;
    in_times(evidence)?;
    if facts.record.is_of_rest { Ok(()) } else { few_enough(facts) }
}

/// How old what a host answers itself may be: 2 s, and what clocks and timers may add to that.
const OLDEST: Span = Span::millis(2500);

/// Who asks is shown at least what anybody knew of when it asked; of what sessions read at hosts
/// that answer it themselves, what anybody knew of some time before, and what the session knew of
/// ([`in_sessions`], [`super::follow`]).
fn in_real_time(facts: &Facts<'_>) -> Result<(), Wrong> {
    let record = facts.record;
    for (index, asked) in record.asked.iter().enumerate() {
        let floor = facts.floors[asked.began];
        let (is_so, zxid) = match place(asked) {
            Some(Place::Change(zxid)) => (zxid > floor, zxid),
            Some(Place::Shows(zxid)) if record.may_be_old(asked) => {
                let (at, _) = record.events[asked.began];
                (zxid >= facts.known_before(at.0.saturating_sub(OLDEST.0)), zxid)
            }
            Some(Place::Shows(zxid)) => (zxid >= floor, zxid),
            _ => continue,
        };
        if is_so {
            continue;
        }
        let told = record.events[..asked.began].iter().find_map(|(_, event)| match event {
            Event::Answered(other) if zxid_of(&record.asked[*other]) == Some(floor) => Some(*other),
            _ => None,
        });
        let why = format!(
            "{} was answered with change {zxid}, though change {floor} was known before it asked",
            asked.client
        );
        return Err((told.into_iter().chain([index]).collect(), why));
    }
    for connection in &record.connections {
        let made = connection.opened.filter(|_| connection.wanted.is_none());
        let floor = facts.floors[connection.began];
        if let Some((session, _)) = made.filter(|(session, _)| session.0 <= floor) {
            let why = format!(
                "{} was given session {:x}, though that change was known before it asked",
                connection.client, session.0
            );
            return Err((Vec::new(), why));
        }
    }
    Ok(())
}

/// What a session has asked earlier shows in what it asks later.
fn in_sessions(facts: &Facts<'_>) -> Result<(), Wrong> {
    let mut newest: BTreeMap<SessionId, (u64, usize)> = BTreeMap::new();
    for (index, asked) in facts.record.asked.iter().enumerate() {
        let Some(session) = asked.session() else { continue };
        let (is_change, zxid) = match place(asked) {
            Some(Place::Change(zxid)) => (true, zxid),
            Some(Place::Shows(zxid)) => (false, zxid),
            _ => continue,
        };
        if let Some((before, other)) = newest.get(&session).copied()
            && (zxid < before || (is_change && zxid == before))
        {
            let why = format!(
                "{} asked for session {:x} first what was answered with change {before}, and then \
                 what was answered with change {zxid}",
                asked.client, session.0
            );
            return Err((Vec::from([other, index]), why));
        }
        newest.insert(session, (zxid, index));
    }
    Ok(())
}

/// Each change has one time, and none is before that of an earlier one.
fn in_times(evidence: &AllEvidence) -> Result<(), Wrong> {
    if let Some((zxid, one, other)) = evidence.unlike {
        let why = format!("change {zxid} is shown with different times");
        return Err((Vec::from([one, other]), why));
    }
    let mut last: Option<(u64, i64, usize)> = None;
    for (zxid, (ms, index)) in &evidence.times {
        if let Some((before, at, other)) = last.filter(|(_, at, _)| at > ms) {
            let why = format!("change {zxid} is of {ms} ms, and change {before} of {at} ms");
            return Err((Vec::from([other, *index]), why));
        }
        last = Some((*zxid, *ms, *index));
    }
    Ok(())
}

/// There are no more changes than somebody can have made.
fn few_enough(facts: &Facts<'_>) -> Result<(), Wrong> {
    let record = facts.record;
    let (mut known, mut open) = (Vec::new(), 0);
    let expirable = |connection: &super::record::Connection| connection.wanted.is_none();
    for (_, event) in &record.events {
        match event {
            // A session is made, and may expire; one that goes on is moved.
            Event::Connects(index) => {
                open += 1 + u64::from(expirable(&record.connections[*index]));
            }
            Event::Asked(index) => {
                let asked = &record.asked[*index];
                let is_known = matches!(place(asked), Some(Place::Change(_)));
                let is_open =
                    facts.open.iter().any(|it| it.change == super::facts::Change::Write(*index));
                open += u64::from(is_known || is_open);
            }
            Event::Answered(index) => {
                if let Some(zxid) =
                    zxid_of(&record.asked[*index]).filter(|zxid| zxid - begin_of(*zxid) > open)
                {
                    known.push(*index);
                    let why: String = format!(
                        "{} was told of change {zxid}, and there can be {open} at most by then",
                        record.asked[*index].client
                    );
                    return Err((known, why));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
