//! Durability, scans and the report, each with what it must condemn and what it must let pass.

mod common;

use common::{
    ABSENT, DELETED, Row, STEPS_MAX, delete, get, healed_history, history, page, put, scan, value,
};
use quorate_check::history::Completion::{Refused, Transacted, Unknown, Written};
use quorate_check::report::{Counts, Verdict};
use quorate_check::{Judges, atomic, durability, judge_all, scan as scans};
use quorate_kernel::operation::Operation;
use quorate_kernel::transaction::{Item, ItemOutcome};

fn durable(rows: &[Row]) -> Verdict {
    durability::judge(&healed_history(rows, Some(100)), STEPS_MAX)
}

#[test]
fn what_was_acknowledged_and_is_there_is_durable() {
    let finals = |text| (9, get("k"), 110, 111, text);
    let two_puts =
        |first, second| [(1, put("k", "A"), 1, 20, first), (2, put("k", "B"), 10, 30, second)];
    // Either of two concurrent puts may be the last.
    for text in ["A", "B"] {
        let mut rows = two_puts(Written, Written).to_vec();
        rows.push(finals(value(text)));
        assert_eq!(durable(&rows), Verdict::Holds, "{text}");
    }
    // A put of unknown outcome may have come last, or never.
    let late = (2, put("k", "B"), 30, 40, Unknown);
    for text in ["A", "B"] {
        let rows = [(1, put("k", "A"), 1, 20, Written), late.clone(), finals(value(text))];
        assert_eq!(durable(&rows), Verdict::Holds, "{text}");
    }
    // It may even strike between two final gets, and a key deleted stays away.
    let rows = [
        (1, put("k", "A"), 1, 20, Written),
        late,
        finals(value("A")),
        (9, get("k"), 120, 121, value("B")),
        (1, put("gone", "A"), 1, 2, Written),
        (1, delete("gone"), 3, 4, DELETED),
        (9, get("gone"), 110, 111, ABSENT),
        (1, put("never", "A"), 3, 4, Refused),
    ];
    assert_eq!(durable(&rows), Verdict::Holds);
}

#[test]
fn what_a_get_saw_before_the_end_is_not_a_question_of_durability() {
    let rows = [
        (1, put("k", "A"), 1, 2, Written),
        (1, get("k"), 3, 4, ABSENT),
        (9, get("k"), 110, 111, value("A")),
    ];
    assert_eq!(durable(&rows), Verdict::Holds);
    let report = judge_all(&healed_history(&rows, Some(100)), STEPS_MAX);
    assert!(report.order.is_violated());
    assert!(report.verdict().is_violated());
}

#[test]
fn what_was_acknowledged_and_is_gone_is_condemned() {
    let written = (1, put("k", "A"), 1, 20, Written);
    for found in [ABSENT, value("never written")] {
        let rows = [written.clone(), (9, get("k"), 110, 111, found)];
        assert!(durable(&rows).is_violated());
    }
    // Two concurrent puts, and final gets that see one and then the other.
    let rows = [
        written.clone(),
        (2, put("k", "B"), 10, 30, Written),
        (9, get("k"), 110, 111, value("B")),
        (9, get("k"), 120, 121, value("A")),
    ];
    assert!(durable(&rows).is_violated());
    // A put after the end counts too.
    let rows =
        [written, (2, put("k", "B"), 110, 111, Written), (9, get("k"), 120, 121, value("A"))];
    assert!(durable(&rows).is_violated());
}

#[test]
fn durability_without_a_final_get_is_unknown() {
    let rows = [(1, put("k", "A"), 1, 20, Written), (9, get("k"), 110, 111, Unknown)];
    let why = "key \"k\" has an acknowledged write but no answered final get".into();
    assert_eq!(durable(&rows), Verdict::Unknown { why });
    let why = "the history does not say when all faults had ended".into();
    assert_eq!(durability::judge(&history(&rows), STEPS_MAX), Verdict::Unknown { why });
}

fn scanned(rows: &[Row]) -> Verdict {
    scans::judge(&history(rows))
}

#[test]
fn a_scan_that_shows_what_is_there_holds() {
    let a = (1, put("a", "1"), 1, 2, Written);
    let b = (1, put("b", "1"), 3, 4, Written);
    let first = |keys: &[&str]| (2, scan(0), 10, 11, page(keys, Some(7)));
    let last = |keys: &[&str]| (2, scan(7), 20, 21, page(keys, None));
    let cases: [&[Row]; 8] = [
        &[a.clone(), b.clone(), first(&["a"]), last(&["b"])],
        // Twice is at least once.
        &[a.clone(), b.clone(), first(&["a", "b"]), last(&["b"])],
        // A page that failed was asked for again.
        &[
            a.clone(),
            b.clone(),
            first(&["a"]),
            (2, scan(7), 12, 13, Unknown),
            (2, scan(7), 14, 15, Refused),
            last(&["b"]),
        ],
        // Given up, so nothing is missing; then begun anew.
        &[a.clone(), b.clone(), first(&[]), (2, scan(0), 30, 31, page(&["a", "b"], None))],
        // Deleted while the scan went on, or perhaps.
        &[a.clone(), (3, delete("a"), 15, 30, DELETED), first(&[]), last(&[])],
        &[a.clone(), (3, delete("a"), 5, 6, Unknown), first(&[]), last(&[])],
        // Written while the scan went on, or perhaps.
        &[(1, put("a", "1"), 1, 12, Written), first(&[]), last(&["a"])],
        &[(1, put("a", "1"), 1, 5, Unknown), first(&["a"]), last(&[])],
    ];
    for rows in cases {
        assert_eq!(scanned(rows), Verdict::Holds, "{rows:#?}");
    }
}

#[test]
fn a_scan_that_misses_a_key_is_condemned() {
    let a = (1, put("a", "1"), 1, 2, Written);
    let first = (2, scan(0), 10, 11, page(&[], Some(7)));
    let last = (2, scan(7), 20, 21, page(&[], None));
    let between = [
        (3, put("a", "2"), 12, 13, Written),
        (3, delete("a"), 12, 13, Refused),
        (3, delete("a"), 30, 31, DELETED),
        // Another client's pages are not this scan's.
        (3, scan(0), 12, 13, page(&["a"], None)),
    ];
    for row in between {
        let rows = [a.clone(), first.clone(), row, last.clone()];
        assert!(scanned(&rows).is_violated(), "{rows:#?}");
    }
    let again = [
        (1, put("a", "1"), 1, 2, Written),
        (1, delete("a"), 3, 4, DELETED),
        (1, put("a", "1"), 5, 6, Written),
        first,
        last,
    ];
    assert!(scanned(&again).is_violated());
}

#[test]
fn a_scan_that_shows_what_is_not_there_is_condemned() {
    let show = (2, scan(0), 10, 11, page(&["a"], None));
    let cases: [&[Row]; 4] = [
        std::slice::from_ref(&show),
        &[show.clone(), (1, put("a", "1"), 12, 13, Written)],
        &[show.clone(), (1, put("a", "1"), 1, 2, Refused)],
        &[
            show.clone(),
            (1, put("a", "1"), 1, 2, Written),
            (1, delete("a"), 3, 4, DELETED),
            (1, put("a", "1"), 12, 13, Written),
        ],
    ];
    for rows in cases {
        assert!(scanned(rows).is_violated(), "{rows:#?}");
    }
    let not_surely_gone: [&[Row]; 3] = [
        &[show.clone(), (1, put("a", "1"), 1, 4, Written), (1, delete("a"), 3, 5, DELETED)],
        &[show.clone(), (1, put("a", "1"), 1, 2, Written), (1, delete("a"), 3, 4, Unknown)],
        &[show.clone(), (1, put("a", "1"), 1, 2, Unknown), (1, delete("a"), 3, 4, DELETED)],
    ];
    for rows in not_surely_gone {
        assert_eq!(scanned(rows), Verdict::Holds, "{rows:#?}");
    }
}

fn ordered(rows: &[Row]) -> Verdict {
    atomic::judge(&history(rows), STEPS_MAX)
}

#[test]
fn what_a_scan_has_shown_no_later_get_or_scan_may_deny() {
    let half_done = (1, put("a", "1"), 1, 2, Unknown);
    let show = (2, scan(0), 10, 20, page(&["a"], None));
    let deny: [Row; 2] = [(3, get("a"), 30, 31, ABSENT), (3, scan(0), 30, 31, page(&[], None))];
    for denial in deny {
        let rows = [half_done.clone(), show.clone(), denial.clone()];
        assert!(ordered(&rows).is_violated(), "{rows:#?}");
        assert_eq!(scanned(&rows), Verdict::Holds, "which this judge cannot see");
        // A delete may have come between.
        let rows = [&rows[..], &[(4, delete("a"), 15, 16, Unknown)]].concat();
        assert_eq!(ordered(&rows), Verdict::Holds, "{rows:#?}");
        // Or the page was read before, or the put came after.
        let early = (3, denial.1.clone(), 11, 19, denial.4.clone());
        assert_eq!(ordered(&[half_done.clone(), show.clone(), early]), Verdict::Holds);
    }
}

#[test]
fn what_a_whole_scan_has_left_out_no_later_get_may_show() {
    let put = (1, put("a", "1"), 1, 2, Written);
    let half_done = (1, delete("a"), 3, 4, Unknown);
    let first = (2, scan(0), 10, 11, page(&[], Some(7)));
    let last = (2, scan(7), 20, 21, page(&[], None));
    let late = |at| (3, get("a"), at, at + 1, value("1"));
    let rows = [put.clone(), half_done.clone(), first.clone(), last.clone(), late(30)];
    assert!(ordered(&rows).is_violated());
    assert_eq!(scanned(&rows), Verdict::Holds, "which this judge cannot see");
    // It need not have been gone before the last page was told, or the scan was given up.
    let rows = [put.clone(), half_done.clone(), first.clone(), last, late(15)];
    assert_eq!(ordered(&rows), Verdict::Holds);
    let given_up = (2, scan(7), 20, 21, Unknown);
    assert_eq!(ordered(&[put, half_done, first, given_up, late(30)]), Verdict::Holds);
}

#[test]
fn why_a_scan_was_wrong_is_said() {
    let rows = [
        (1, put("a", "1"), 1, 2, Unknown),
        (2, scan(0), 10, 20, page(&["a"], None)),
        (3, get("a"), 30, 31, ABSENT),
    ];
    let Verdict::Violated(explanation) = ordered(&rows) else { panic!("it is wrong") };
    assert_eq!(explanation.operations, [0, 1, 2]);
    let why = "the scan by c2 showed it: no order lets the key be there when they say so";
    assert_eq!(explanation.why, why);
}

#[test]
fn a_report_counts_and_judges_what_there_is() {
    let rows = [
        (1, put("k", "A"), 1, 10, Written),
        (2, put("k", "B"), 5, 12, Unknown),
        (3, get("k"), 6, 11, value("A")),
        (4, get("other"), 7, 13, ABSENT),
        (5, get("k"), 8, 14, Refused),
    ];
    let mut judges = Judges::new();
    let report = judges.judge(&history(&rows), STEPS_MAX);
    let counts =
        Counts { operations: 5, answered: 3, refused: 1, unknown: 1, keys: 2, overlap_max: 3 };
    assert_eq!(report.counts, counts);
    assert_eq!((report.durable.is_some(), report.scans.is_some()), (false, false));
    assert_eq!(
        report.to_string(),
        "5 operations on 2 keys: 3 answered, 1 refused, 1 of unknown outcome; at most 3 at once on \
         a key\nlinearizability: holds"
    );
    let mut rows = rows.to_vec();
    rows.push((6, scan(0), 20, 21, page(&["k"], None)));
    rows.push((6, get("k"), 110, 120, value("B")));
    let report = judges.judge(&healed_history(&rows, Some(100)), STEPS_MAX);
    assert_eq!(report.verdicts().count(), 3);
    assert_eq!(report.verdict(), &Verdict::Holds);
    rows.pop();
    let report = judges.judge(&healed_history(&rows, Some(100)), STEPS_MAX);
    assert!(matches!(report.verdict(), Verdict::Unknown { .. }));
}

#[test]
fn a_history_with_transactions_is_for_the_judge_of_the_map() {
    let (value, expiry) = ("A".into(), Default::default());
    let items = [Item::Put { key: "k".into(), value, expiry }, Item::Get { key: "l".into() }];
    let both = Operation::Transact { items: items.to_vec(), name: None };
    let told = Transacted(vec![ItemOutcome::Written, ItemOutcome::Value(None)]);
    let rows = [
        (1, both, 1, 2, told),
        (1, put("k", "B"), 3, 4, Written),
        (1, scan(0), 5, 6, page(&[], None)),
        (9, get("k"), 110, 111, ABSENT),
    ];
    let report = judge_all(&healed_history(&rows, Some(100)), STEPS_MAX);
    let verdicts: Vec<&Verdict> = report.verdicts().map(|(_, verdict)| verdict).collect();
    let [Verdict::Violated(explanation), Verdict::Unknown { why }] = verdicts[..] else {
        panic!("{report}")
    };
    assert_eq!(explanation.operations, [1, 3], "of final reads, too: {explanation}");
    assert!(why.contains("transactions over several keys"), "{why}");
    // The judges of single keys say of themselves that they cannot tell.
    for verdict in [ordered(&rows), durable(&rows), scanned(&rows)] {
        assert!(matches!(verdict, Verdict::Unknown { .. }), "{verdict}");
    }
}
