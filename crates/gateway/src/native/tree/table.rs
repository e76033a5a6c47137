//! Which sessions are open at this host, in which opening, and what a client must show.
//!
//! A call may say in which opening of its session it is made: one that was on its way while the
//! client went on with the session is not to be done behind what the client has asked since.

use super::closing::Closing;
use super::words::{Shown, is_same};
use quorate_kernel::ids::LaneId;
use quorate_kernel::mutant;
use quorate_kernel::tree::{Password, SessionId};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// A keyspace's lane, and a session of it.
pub(super) type Name = (LaneId, SessionId);

/// The sessions that are open.
#[derive(Default)]
pub struct Sessions {
    all: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: BTreeMap<Name, Open>,
    /// How often each is being resumed.
    resumed: BTreeMap<Name, u32>,
    /// How many were opened since the start.
    count: u64,
}

struct Open {
    password: Password,
    /// Which opening it is, as the engine counts them.
    opening: u64,
    /// The same as this table counts them: one session may be opened again while its first stream
    /// goes.
    number: u64,
    /// Tells its stream that it was closed.
    close: oneshot::Sender<()>,
    /// How many calls of its client close it, as far as they have not failed: then that it has
    /// ended is no error.
    closing: u32,
}

impl Sessions {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session is open; the number of the opening, and what tells when it was closed.
    pub(super) fn insert(
        &self,
        name: Name,
        (password, opening): (Password, u64),
    ) -> (u64, Closing) {
        let (close, closed) = oneshot::channel();
        let closed = Closing::new(closed);
        let mut table = self.table();
        table.count += 1;
        let number = table.count;
        // Its client may have gone on with it since.
        if table.open.get(&name).is_none_or(|open| open.opening <= opening) {
            table.open.insert(name, Open { password, opening, number, close, closing: 0 });
        }
        (number, closed)
    }

    /// Its stream is gone.
    pub(super) fn remove(&self, name: Name, number: u64) {
        let mut table = self.table();
        if table.open.get(&name).is_some_and(|open| open.number == number) {
            table.open.remove(&name);
        }
    }

    /// It was closed.
    pub(super) fn close(&self, name: Name) {
        if let Some(open) = self.table().open.remove(&name) {
            // Its stream may be gone.
            let _ = open.close.send(());
        }
    }

    /// Its client begins to close it; which opening, as this table counts them. A call that has
    /// been on its way since an earlier opening closes nothing.
    pub(super) fn begin_closing(&self, lane: LaneId, shown: &Shown) -> Option<u64> {
        let mut table = self.table();
        let open = table.open.get_mut(&(lane, shown.session));
        let open = open.filter(|it| is_same(&it.password, &shown.password))?;
        let is_of_this = shown.opening.is_none_or(|opening| opening == open.opening);
        open.closing += u32::from(is_of_this);
        is_of_this.then_some(open.number)
    }

    /// It could not.
    pub(super) fn fail_closing(&self, name: Name, number: u64) {
        let mut table = self.table();
        if let Some(open) = table.open.get_mut(&name).filter(|open| open.number == number) {
            open.closing = open.closing.saturating_sub(1);
        }
    }

    /// Whether the client of a stream closes its session.
    pub(super) fn is_closing(&self, name: Name, number: u64) -> bool {
        let table = self.table();
        table.open.get(&name).is_some_and(|open| open.number == number && open.closing > 0)
    }

    /// In which opening something is asked for it, if it is open here, and the password is right,
    /// and the client has not resumed it since, and does not. A client that does has given up what
    /// it had asked before: that is not to be done behind what it asks then. The engine refuses
    /// what comes to it later than that. But that its client is there is so, whoever says it.
    pub(super) fn admits(&self, lane: LaneId, shown: &Shown, is_ping: bool) -> Option<u64> {
        let (table, name) = (self.table(), (lane, shown.session));
        let open = table.open.get(&name).filter(|open| is_same(&open.password, &shown.password))?;
        let is_of_this = shown.opening.is_none_or(|opening| opening == open.opening);
        let is_in_time = is_of_this || mutant!("native_hears_earlier_openings");
        let is_heard = is_ping || (is_in_time && !table.resumed.contains_key(&name));
        is_heard.then_some(open.opening)
    }

    /// Its client resumes it. Who does not know the password holds up nobody.
    pub(super) fn resume(&self, name: Name, shown: &Password) -> Option<Resuming<'_>> {
        let mut table = self.table();
        table.open.get(&name).filter(|open| is_same(&open.password, shown))?;
        *table.resumed.entry(name).or_default() += 1;
        Some(Resuming { sessions: self, name })
    }
}

/// A session that is open here and is being resumed: nothing is asked for it meanwhile.
pub(super) struct Resuming<'a> {
    sessions: &'a Sessions,
    name: Name,
}

impl Drop for Resuming<'_> {
    fn drop(&mut self) {
        let mut table = self.sessions.table();
        if let Some(count) = table.resumed.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                table.resumed.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    const NAME: Name = (LaneId(7), SessionId(9));

    /// What a client shows that says nothing of an opening.
    fn shown(password: Password) -> Shown {
        Shown { session: NAME.1, password, opening: None }
    }

    #[test]
    fn a_session_is_admitted_by_its_password_as_long_as_it_is_open() {
        let sessions = Sessions::default();
        let admits = |password| sessions.admits(NAME.0, &shown(password), false);
        assert_eq!(admits([1; 16]), None, "it is not open");
        let (first, mut told_first) = sessions.insert(NAME, ([1; 16], 7));
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(admits([1; 16]), Some(7));
        for place in 0..16 {
            let mut wrong = [1; 16];
            wrong[place] = 2;
            assert_eq!(admits(wrong), None, "{place}");
        }
        let other = sessions.admits(LaneId(8), &shown([1; 16]), true);
        assert_eq!(other, None, "another keyspace's");
        let (second, mut told_second) = sessions.insert(NAME, ([1; 16], 8));
        for _ in 0..3 {
            assert!(told_first.poll(&mut cx).is_pending(), "it was opened again, not closed");
        }
        sessions.remove(NAME, first);
        assert_eq!(admits([1; 16]), Some(8), "it was opened again");
        assert!(told_second.poll(&mut cx).is_pending());
        sessions.close(NAME);
        assert!(told_second.poll(&mut cx).is_ready() && admits([1; 16]).is_none());
        sessions.remove(NAME, second);
    }

    #[test]
    fn nothing_is_asked_for_a_session_while_it_is_resumed_but_its_client_is_there() {
        let sessions = Sessions::default();
        let admits = || sessions.admits(NAME.0, &shown([1; 16]), false).is_some();
        let is_heard = |password| sessions.admits(NAME.0, &shown(password), true).is_some();
        assert!(sessions.resume(NAME, &[1; 16]).is_none(), "it is not open here");
        let (first, _told_first) = sessions.insert(NAME, ([1; 16], 1));
        assert!(sessions.resume(NAME, &[2; 16]).is_none() && admits());
        let (one, two) = (sessions.resume(NAME, &[1; 16]), sessions.resume(NAME, &[1; 16]));
        assert!(one.is_some() && two.is_some() && !admits());
        assert!(is_heard([1; 16]) && !is_heard([2; 16]), "who knows the password is its client");
        drop(one);
        let (_second, _told_second) = sessions.insert(NAME, ([1; 16], 2));
        sessions.remove(NAME, first);
        assert!(!admits(), "it is resumed once more");
        drop(two);
        assert!(admits());
        drop(sessions.resume(NAME, &[1; 16]));
        assert!(admits(), "who could not resume it has it yet");
    }

    #[test]
    fn what_a_client_asked_before_it_went_on_with_its_session_is_not_admitted_behind_that() {
        let sessions = Sessions::default();
        let admits = |opening, is_ping| {
            sessions.admits(NAME.0, &Shown { opening, ..shown([1; 16]) }, is_ping)
        };
        let (first, _told_first) = sessions.insert(NAME, ([1; 16], 7));
        assert_eq!(admits(Some(7), false), Some(7));
        drop(sessions.resume(NAME, &[1; 16]));
        let (_second, _told_second) = sessions.insert(NAME, ([1; 16], 8));
        sessions.remove(NAME, first);
        assert_eq!(admits(Some(7), false), None, "it was on its way meanwhile");
        assert_eq!(admits(Some(7), true), Some(8), "but its client is there");
        assert_eq!([admits(Some(8), false), admits(None, false)], [Some(8); 2]);
        assert_eq!(admits(Some(9), false), None, "nobody was told of such an opening");
    }

    #[test]
    fn that_a_session_ends_which_its_client_closes_is_no_error() {
        let sessions = Sessions::default();
        let begin = |password, opening| {
            sessions.begin_closing(NAME.0, &Shown { session: NAME.1, password, opening })
        };
        let (first, _told_first) = sessions.insert(NAME, ([1; 16], 1));
        assert_eq!(begin([2; 16], Some(1)), None);
        assert!(!sessions.is_closing(NAME, first), "anybody says so");
        assert_eq!([begin([1; 16], Some(1)), begin([1; 16], None)], [Some(first); 2]);
        sessions.fail_closing(NAME, first);
        assert!(sessions.is_closing(NAME, first), "another call closes it still");
        sessions.fail_closing(NAME, first);
        assert!(!sessions.is_closing(NAME, first), "neither could");
        assert_eq!(begin([1; 16], Some(1)), Some(first));
        let (second, _told_second) = sessions.insert(NAME, ([1; 16], 2));
        assert!(!sessions.is_closing(NAME, first) && !sessions.is_closing(NAME, second));
        assert_eq!(begin([1; 16], Some(1)), None, "that was on its way meanwhile");
        assert!(!sessions.is_closing(NAME, second));
        assert_eq!(begin([1; 16], Some(2)), Some(second));
        sessions.fail_closing(NAME, first);
        assert!(sessions.is_closing(NAME, second), "the first could not");
    }
}
