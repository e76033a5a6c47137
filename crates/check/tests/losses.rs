//! A recording goes on after hosts have lost what they had acknowledged last.

use bytes::Bytes;
use quorate_check::atomic::judge;
use quorate_check::history::{ClientId, Completion, Recorder};
use quorate_check::report::Verdict;
use quorate_check::transactions;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Time;
use quorate_kernel::transaction::{Condition, Item, ItemOutcome};

const STEPS_MAX: u64 = 10_000;

fn get(key: &'static str) -> Operation {
    Operation::get(Bytes::from_static(key.as_bytes()))
}

fn put(value: &'static str) -> Operation {
    Operation::put(Bytes::from_static(b"k"), Bytes::from_static(value.as_bytes()))
}

#[test]
fn what_was_answered_shortly_before_a_loss_may_be_gone() {
    // The second value is lost, or not, and the third one was under way; the first one holds.
    let verdict = |value: Option<&'static str>| {
        let mut recorder = Recorder::new();
        for (at, value) in [(10, "a"), (50, "b")] {
            let id = recorder.invoke(ClientId(1), put(value), Time(at));
            recorder.complete(id, Completion::Written, Time(at + 5));
        }
        let seen = recorder.invoke(ClientId(2), get("k"), Time(60));
        recorder.complete(seen, Completion::Value(Some(Bytes::from_static(b"b"))), Time(61));
        let under_way = recorder.invoke(ClientId(1), put("c"), Time(65));
        let past = recorder.lose(Time(40), |_| true);
        assert!(matches!(judge(&past, STEPS_MAX), Verdict::Holds));
        recorder.complete(under_way, Completion::Written, Time(75));
        let get = recorder.invoke(ClientId(1), get("k"), Time(80));
        let value = value.map(|value| Bytes::from_static(value.as_bytes()));
        recorder.complete(get, Completion::Value(value), Time(85));
        matches!(judge(recorder.finish(), STEPS_MAX), Verdict::Holds)
    };
    assert!(["a", "b", "c"].into_iter().all(|value| verdict(Some(value))));
    assert!(!verdict(None), "it was acknowledged long before");
}

/// What hosts held alone is lost for some keys; of the others every value must be there.
#[test]
fn only_the_keys_that_were_lost_are_excused() {
    let verdict = |lost: &'static str| {
        let mut recorder = Recorder::new();
        let id = recorder.invoke(ClientId(1), put("a"), Time(10));
        recorder.complete(id, Completion::Written, Time(15));
        recorder.lose(Time(0), |operation| operation.key().is_some_and(|key| key == lost));
        let get = recorder.invoke(ClientId(1), get("k"), Time(80));
        recorder.complete(get, Completion::Value(None), Time(85));
        matches!(judge(recorder.finish(), STEPS_MAX), Verdict::Holds)
    };
    assert!(verdict("k"), "its only copy is lost");
    assert!(!verdict("other"), "it is somewhere else");
}

/// Both `x` and `y` are put at one moment.
fn pair(value: &'static str) -> Operation {
    let put = |key: &'static str| Item::Put {
        key: Bytes::from_static(key.as_bytes()),
        value: Bytes::from_static(value.as_bytes()),
        expiry: Expiry::Never,
    };
    Operation::Transact { items: vec![put("x"), put("y")], name: None }
}

/// Groups of hosts lose what they have not synced apart from each other: of what was acknowledged
/// or under way then each key is left by itself, but nothing of before is torn.
#[test]
fn of_what_was_done_in_several_groups_some_may_have_lost_their_part() {
    let wrote = || Completion::Transacted(vec![ItemOutcome::Written; 2]);
    let verdict = |values: [&'static str; 2], tears: bool| {
        let mut recorder = Recorder::new();
        for (at, value) in [(10, "a"), (50, "b")] {
            let id = recorder.invoke(ClientId(1), pair(value), Time(at));
            recorder.complete(id, wrote(), Time(at + 5));
        }
        let under_way = recorder.invoke(ClientId(2), pair("c"), Time(65));
        let past = match tears {
            true => recorder.tear(Time(40), |_| true, |_| true),
            false => recorder.lose(Time(40), |_| true),
        };
        assert!(matches!(transactions::judge(&past, STEPS_MAX), Verdict::Holds));
        recorder.complete(under_way, Completion::Refused, Time(75));
        for (at, (key, value)) in (80..).zip(["x", "y"].into_iter().zip(values)) {
            let get = recorder.invoke(ClientId(1), get(key), Time(2 * at));
            let value = (!value.is_empty()).then(|| Bytes::from_static(value.as_bytes()));
            recorder.complete(get, Completion::Value(value), Time(2 * at + 1));
        }
        matches!(transactions::judge(recorder.finish(), STEPS_MAX), Verdict::Holds)
    };
    for values in [["b", "a"], ["c", "a"], ["b", "c"]] {
        assert!(verdict(values, true), "{values:?}");
        assert!(!verdict(values, false), "{values:?}: of one group all or nothing is left");
    }
    for values in [["a", "a"], ["a", "b"], ["b", "b"]] {
        assert!(verdict(values, true) && verdict(values, false), "{values:?}");
    }
    assert!(!verdict(["a", "d"], true), "nobody has written it");
    assert!(!verdict(["", "b"], true), "the first one was acknowledged long before");
}

/// Where both keys are of one group, all of a transaction is left or nothing.
#[test]
fn what_was_done_in_one_group_is_not_torn() {
    let verdict = |values: [&'static str; 2], is_apart: bool| {
        let mut recorder = Recorder::new();
        let id = recorder.invoke(ClientId(1), pair("a"), Time(50));
        let wrote = Completion::Transacted(vec![ItemOutcome::Written; 2]);
        recorder.complete(id, wrote, Time(55));
        recorder.tear(Time(40), |_| true, |_| is_apart);
        for (at, (key, value)) in (80..).zip(["x", "y"].into_iter().zip(values)) {
            let get = recorder.invoke(ClientId(1), get(key), Time(2 * at));
            let value = (!value.is_empty()).then(|| Bytes::from_static(value.as_bytes()));
            recorder.complete(get, Completion::Value(value), Time(2 * at + 1));
        }
        matches!(transactions::judge(recorder.finish(), STEPS_MAX), Verdict::Holds)
    };
    for is_apart in [false, true] {
        assert!(verdict(["", ""], is_apart) && verdict(["a", "a"], is_apart));
    }
    assert!(verdict(["a", ""], true) && verdict(["", "a"], true));
    assert!(!verdict(["a", ""], false), "it was done, and is done as a whole");
}

/// Who was told that nothing was done may rely on it, also after a loss, and also if the loss came
/// before the answer; but not where one of several groups may have forgotten it.
#[test]
fn what_one_group_has_refused_was_not_done() {
    let absent = || Item::Check { key: Bytes::from_static(b"x"), holds: Condition::Absent };
    let verdict = |told: Completion, is_late: bool, is_apart: bool| {
        let mut recorder = Recorder::new();
        let Operation::Transact { mut items, .. } = pair("a") else { unreachable!("it is one") };
        items.insert(0, absent());
        let id = recorder.invoke(ClientId(1), Operation::Transact { items, name: None }, Time(50));
        let tear = |recorder: &mut Recorder| {
            recorder.tear(Time(40), |_| true, |_| is_apart);
        };
        if is_late {
            tear(&mut recorder);
        }
        recorder.complete(id, told, Time(55));
        if !is_late {
            tear(&mut recorder);
        }
        let get = recorder.invoke(ClientId(1), get("y"), Time(80));
        recorder.complete(get, Completion::Value(Some(Bytes::from_static(b"a"))), Time(81));
        matches!(transactions::judge(recorder.finish(), STEPS_MAX), Verdict::Holds)
    };
    for is_late in [false, true] {
        for told in [Completion::Refused, Completion::Unmet { item: 0 }] {
            assert!(!verdict(told.clone(), is_late, false), "{told:?}: one group has said so");
            assert!(verdict(told.clone(), is_late, true), "{told:?}: another may have done it");
        }
        assert!(verdict(Completion::Unknown, is_late, false));
    }
}
