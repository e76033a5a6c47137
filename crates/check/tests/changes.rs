//! The judges of changes in place: counters, and puts that ask whether there is a value.

mod common;

use common::{Row, STEPS_MAX, bytes, get, history, put, transact, value};
use quorate_check::history::Completion::{self, Committed, Refused, Transacted, Unknown};
use quorate_check::report::Verdict;
use quorate_check::{counters, judge_all, transactions};
use quorate_kernel::change::{Change, Changed, Unchanged};
use quorate_kernel::expiry::Expiry;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;
use quorate_kernel::transaction::{Item, ItemOutcome};

fn change(change: Change) -> Operation {
    transact(&[Item::Change { key: bytes("x"), change }])
}

fn add() -> Operation {
    change(Change::Add(1))
}

fn sum(number: i64) -> Completion {
    Transacted(vec![ItemOutcome::Changed(Changed::Integer(number))])
}

fn judged(rows: &[Row]) -> Verdict {
    counters::judge(&history(rows))
}

fn breaks(rows: &[Row], why: &str) {
    let Verdict::Violated(said) = judged(rows) else { panic!("{why}: {:?}", judged(rows)) };
    assert!(said.to_string().contains(why), "{said}");
    assert!(said.to_string().contains("add 1 to \"x\"") || !why.contains("same"), "{said}");
}

#[test]
fn what_additions_are_told_has_an_order() {
    let rows: Vec<Row> = vec![
        (1, add(), 0, 10, sum(2)),
        (2, add(), 5, 15, sum(1)),
        (3, add(), 20, 30, Unknown),
        (4, add(), 20, 25, Refused),
        (1, get("x"), 26, 28, value("2")),
        (2, get("x"), 26, 28, value("3")),
        (1, add(), 40, 50, sum(4)),
    ];
    assert_eq!(judged(&rows), Verdict::Holds);
    assert_eq!(judge_all(&history(&rows), STEPS_MAX).order, Verdict::Holds);
}

#[test]
fn an_addition_is_neither_lost_nor_done_twice() {
    let first = (1, add(), 0, 10, sum(1));
    breaks(&[first.clone(), (2, add(), 5, 15, sum(1))], "told the same sum");
    breaks(&[first.clone(), (2, add(), 20, 30, sum(1))], "should be 2 to 2");
    breaks(&[first.clone(), (2, add(), 20, 30, sum(3))], "should be 2 to 2");
    breaks(&[first.clone(), (2, get("x"), 20, 30, Completion::Value(None))], "should be 1 to 1");
    breaks(&[(1, get("x"), 0, 5, value("1")), (2, add(), 7, 9, sum(1))], "should be 0 to 0");
    let open = (2, add(), 5, 15, Unknown);
    breaks(&[first.clone(), open.clone(), (1, get("x"), 20, 30, value("3"))], "1 to 2");
    let late =
        [first.clone(), open, (1, get("x"), 20, 30, value("2")), (1, get("x"), 40, 50, value("1"))];
    breaks(&late, "1 was told after 2 had been told");
    // Of one that is known to be done, and not what it came to, the same is asked.
    let done = (2, add(), 5, 15, Committed);
    let read = |sum| [first.clone(), done.clone(), (1, get("x"), 20, 30, value(sum))];
    assert_eq!(judged(&read("2")), Verdict::Holds);
    breaks(&read("1"), "should be 2 to 2");
    // What was shown is not lost again.
    let shown = [(1, add(), 0, 10, Unknown), (2, get("x"), 20, 30, value("1"))];
    let [open, read] = shown;
    breaks(&[open, read, (2, add(), 40, 50, sum(1))], "1 was told after 1 had been told");
}

#[test]
fn what_is_no_counter_is_not_judged() {
    let unknown = |rows: &[Row]| assert!(matches!(judged(rows), Verdict::Unknown { .. }));
    unknown(&[(1, add(), 0, 1, sum(1)), (1, put("x", "7"), 2, 3, Completion::Written)]);
    unknown(&[(1, add(), 0, 1, sum(1)), (1, change(Change::Add(2)), 2, 3, sum(3))]);
    unknown(&[(1, change(Change::Add(-1)), 2, 3, sum(-1))]);
    let append = change(Change::Append(bytes("y")));
    let told = Transacted(vec![ItemOutcome::Changed(Changed::Length(1))]);
    let verdict = transactions::judge(&history(&[(1, append, 0, 1, told)]), STEPS_MAX);
    assert!(matches!(verdict, Verdict::Unknown { .. }));
}

/// Additions in random order, as one counter does them; one in so many is told something else.
fn run(rng: &mut Rng, lies_in: u64) -> (Vec<Row>, bool) {
    let (mut rows, mut moments) = (Vec::<Row>::new(), Vec::new());
    for at in 0..rng.between(5, 30) as usize {
        let from = rng.below(2000) * 64 + at as u64;
        let moment = from + rng.between(1, 300) * 64;
        let to = moment + rng.between(1, 300) * 64;
        let is_add = rng.below(4) > 0;
        let operation = if is_add { add() } else { get("x") };
        let completion = if is_add && rng.below(8) == 0 { Unknown } else { Completion::Written };
        moments.push((moment, at));
        rows.push((at as u32, operation, from, to, completion));
    }
    moments.sort_unstable();
    let (mut counter, mut lied) = (0, false);
    for (_, at) in moments {
        let is_add = rows[at].1 == add();
        let is_unknown = rows[at].4 == Unknown;
        if is_unknown && rng.below(2) == 0 {
            continue;
        }
        counter += i64::from(is_add);
        let is_lie = !is_unknown && lies_in > 0 && rng.below(lies_in) == 0;
        lied |= is_lie;
        let told = if is_lie { counter - 1 } else { counter };
        rows[at].4 = match (is_unknown, is_add) {
            (true, _) => Unknown,
            (false, true) => sum(told),
            (false, false) => value(&told.to_string()),
        };
    }
    (rows, lied)
}

#[test]
fn counters_that_do_each_addition_once_hold_and_others_are_found() {
    let (mut found, mut planted) = (0, 0);
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        assert_eq!(judged(&run(&mut rng, 0).0), Verdict::Holds, "seed {seed}");
        let (rows, lied) = run(&mut rng, 6);
        planted += u32::from(lied);
        found += u32::from(lied && judged(&rows) != Verdict::Holds);
    }
    assert!(planted > 1500 && found * 10 > planted * 9, "{found} of {planted}");
}

#[test]
fn a_put_that_asks_is_told_truly_whether_there_was_a_value() {
    let put_if =
        |exists| change(Change::PutIf { exists, value: bytes("v"), expiry: Expiry::Never });
    let done = || Transacted(vec![ItemOutcome::Changed(Changed::Put)]);
    let not = || Transacted(vec![ItemOutcome::Unchanged(Unchanged::Condition)]);
    let verdict = |rows: &[Row]| transactions::judge(&history(rows), STEPS_MAX);
    let (first, second) = ((1, put_if(false), 0, 1, done()), (2, put_if(false), 2, 3, not()));
    let read = (1, get("x"), 4, 5, value("v"));
    let holds = [first.clone(), second.clone(), (3, put_if(true), 2, 3, done()), read.clone()];
    assert_eq!(verdict(&holds), Verdict::Holds);
    for rows in [
        vec![first.clone(), (2, put_if(false), 2, 3, done())],
        vec![second, read.clone()],
        vec![first, (3, put_if(true), 2, 3, not())],
        vec![(1, put_if(true), 0, 1, done())],
    ] {
        assert!(matches!(verdict(&rows), Verdict::Violated(_)), "{rows:?}");
    }
}
