//! The words in which a broken promise is told.

mod common;

use common::{
    ABSENT, DELETED, Row, STEPS_MAX, delete, get, healed_history, history, page, put, scan, value,
};
use quorate_check::history::Completion::{Refused, Unknown, Written};
use quorate_check::history::History;
use quorate_check::{atomic, durability, scan as scans};

#[track_caller]
fn assert_told(rows: &[Row], expected: &str) {
    assert_text(&atomic::judge(&history(rows), STEPS_MAX).to_string(), expected);
}

#[track_caller]
fn assert_text(told: &str, expected: &str) {
    let expected = expected.strip_prefix('\n').unwrap_or(expected).trim_end();
    let told: Vec<&str> = told.lines().map(str::trim_end).collect();
    assert_eq!(told.join("\n"), expected);
}

#[test]
fn a_read_after_another_write() {
    let rows = [
        (1, put("k", "A"), 1, 2, Written),
        (3, get("k"), 2, 3, value("A")),
        (2, put("k", "B"), 10, 2000, Written),
        (3, get("k"), 2500, 2600, value("A")),
        (3, get("k"), 2700, 2800, value("B")),
        (1, put("other", "A"), 2850, 2900, Written),
    ];
    assert_told(
        &rows,
        r#"
violated
key "k": no order explains these 3 of its 5 operations (times in ms)
  c1  put "A"  0.001000 – 0.002000  written
  c2  put "B"  0.010000 – 2.000000  written
  c3  get      2.500000 – 2.600000  returned "A"
get by c3 returned "A" after put "B" by c2 had completed, and nobody wrote "A" again
"#,
    );
}

#[test]
fn a_read_after_another_read() {
    let rows = [
        (1, put("k", "A"), 1, 2, Written),
        (2, put("k", "B"), 3, 90, Written),
        (3, get("k"), 10, 20, value("B")),
        (4, get("k"), 30, 40, value("A")),
    ];
    assert_told(
        &rows,
        r#"
violated
key "k": no order explains these 4 of its 4 operations (times in ms)
  c1  put "A"  0.001000 – 0.002000  written
  c2  put "B"  0.003000 – 0.090000  written
  c3  get      0.010000 – 0.020000  returned "B"
  c4  get      0.030000 – 0.040000  returned "A"
get by c4 returned "A" after get by c3 had returned "B", and nobody wrote "A" again
"#,
    );
}

#[test]
fn a_value_that_comes_and_goes() {
    let rows = [
        (1, put("k", "A"), 1, 0xffff, Unknown),
        (2, put("k", "B"), 3, 90, Written),
        (3, get("k"), 10, 20, value("A")),
        (4, get("k"), 30, 40, value("B")),
        (3, get("k"), 50, 60, value("A")),
    ];
    assert_told(
        &rows,
        r#"
violated
key "k": no order explains these 5 of its 5 operations (times in ms)
  c1  put "A"  0.001000 – open      unknown, may apply at any time
  c2  put "B"  0.003000 – 0.090000  written
  c3  get      0.010000 – 0.020000  returned "A"
  c4  get      0.030000 – 0.040000  returned "B"
  c3  get      0.050000 – 0.060000  returned "A"
get by c3 returned "A" after get by c4 had returned "B", and nobody wrote "A" again
"#,
    );
}

#[test]
fn nothing_after_a_put() {
    let rows = [
        (1, delete("k"), 1, 2, DELETED),
        (1, put("k", "A"), 3, 4, Written),
        (2, get("k"), 5, 6, ABSENT),
    ];
    assert_told(
        &rows,
        r#"
violated
key "k": no order explains these 2 of its 3 operations (times in ms)
  c1  put "A"  0.003000 – 0.004000  written
  c2  get      0.005000 – 0.006000  returned nothing
get by c2 returned nothing after put "A" by c1 had completed, and no delete came after it
"#,
    );
}

#[test]
fn a_value_from_nowhere() {
    let long = "x".repeat(1024);
    assert_told(
        &[(1, get("k"), 1, 2, value(&long))],
        r#"
violated
key "k": no order explains these 1 of its 1 operations (times in ms)
  c1  get  0.001000 – 0.002000  returned "xxxxxxxxxxxxxxxx…" (1024 bytes, #85b3164a)
get by c1 returned "xxxxxxxxxxxxxxxx…" (1024 bytes, #85b3164a), which nobody ever wrote
"#,
    );
}

#[test]
fn a_value_from_the_future() {
    let rows = [(1, get("k"), 1, 2, value("A")), (2, put("k", "A"), 3, 4, Written)];
    assert_told(
        &rows,
        r#"
violated
key "k": no order explains these 2 of its 2 operations (times in ms)
  c1  get      0.001000 – 0.002000  returned "A"
  c2  put "A"  0.003000 – 0.004000  written
get by c1 returned "A" before put "A" by c2 had begun
"#,
    );
}

#[test]
fn a_value_of_a_refused_put() {
    let rows = [(2, put("k", "A"), 1, 3, Refused), (1, get("k"), 5, 6, value("A"))];
    assert_told(
        &rows,
        r#"
violated
key "k": no order explains these 2 of its 2 operations (times in ms)
  c2  put "A"  0.001000 – 0.003000  refused, nothing changed
  c1  get      0.005000 – 0.006000  returned "A"
get by c1 returned "A", though put "A" by c2 had been refused with the promise that nothing was changed
"#,
    );
}

#[test]
fn a_knot_of_several_operations() {
    let rows = [
        (1, put("k", "A"), 1, 10, Written),
        (2, put("k", "B"), 2, 11, Written),
        (3, put("k", "A"), 3, 12, Written),
        (4, get("k"), 13, 14, value("A")),
        (4, get("k"), 15, 16, value("B")),
        (4, get("k"), 17, 18, value("A")),
    ];
    assert_told(
        &rows,
        r#"
violated
key "k": no order explains these 5 of its 6 operations (times in ms)
  c1  put "A"  0.001000 – 0.010000  written
  c2  put "B"  0.002000 – 0.011000  written
  c3  put "A"  0.003000 – 0.012000  written
  c4  get      0.013000 – 0.014000  returned "A"
  c4  get      0.015000 – 0.016000  returned "B"
get by c4 returned "B" after get by c4 had returned "A", and nobody wrote "B" again
"#,
    );
}

#[test]
fn two_writes_of_each_value_but_three_changes_back() {
    let seen = ["A", "B", "A", "B", "A"];
    let mut rows: Vec<Row> =
        (0..4).map(|n| (n, put("k", ["A", "B"][n as usize % 2]), n.into(), 90, Written)).collect();
    for (text, at) in seen.iter().zip((10..).step_by(2)) {
        rows.push((9, get("k"), at, at + 1, value(text)));
    }
    assert_told(
        &rows,
        r#"
violated
key "k": no order explains these 9 of its 9 operations (times in ms)
  c0  put "A"  0.000000 – 0.090000  written
  c1  put "B"  0.001000 – 0.090000  written
  c2  put "A"  0.002000 – 0.090000  written
  c3  put "B"  0.003000 – 0.090000  written
  c9  get      0.010000 – 0.011000  returned "A"
  c9  get      0.012000 – 0.013000  returned "B"
  c9  get      0.014000 – 0.015000  returned "A"
  c9  get      0.016000 – 0.017000  returned "B"
  c9  get      0.018000 – 0.019000  returned "A"
no order of these operations gives every get the value it returned
"#,
    );
}

#[track_caller]
fn assert_durable(history: &History, expected: &str) {
    assert_text(&durability::judge(history, STEPS_MAX).to_string(), expected);
}

#[test]
fn an_acknowledged_put_is_gone() {
    let rows = [
        (1, put("k", "A"), 1, 2, Written),
        (2, put("k", "B"), 3, 4, Written),
        (9, get("k"), 20, 21, value("A")),
    ];
    assert_durable(
        &healed_history(&rows, Some(10)),
        r#"
violated
key "k": an acknowledged write is gone (times in ms)
  c1  put "A"  0.001000 – 0.002000  written
  c2  put "B"  0.003000 – 0.004000  written
  c9  get      0.020000 – 0.021000  returned "A"
acknowledged put "B" by c2 of key "k", confirmed at 0.004000 ms, is gone: the final get by c9 returned "A"
"#,
    );
}

#[test]
fn an_acknowledged_delete_is_undone() {
    let rows = [
        (1, put("k", "A"), 1, 2, Written),
        (2, delete("k"), 3, 4, DELETED),
        (9, get("k"), 20, 21, value("A")),
    ];
    assert_durable(
        &healed_history(&rows, Some(10)),
        r#"
violated
key "k": an acknowledged write is gone (times in ms)
  c1  put "A"  0.001000 – 0.002000  written
  c2  delete   0.003000 – 0.004000  deleted
  c9  get      0.020000 – 0.021000  returned "A"
acknowledged delete by c2 of key "k", confirmed at 0.004000 ms, is undone: the final get by c9 returned "A"
"#,
    );
}

#[test]
fn two_final_gets_that_differ() {
    let rows = [
        (1, put("k", "A"), 1, 5, Written),
        (2, put("k", "B"), 2, 6, Written),
        (9, get("k"), 20, 21, value("A")),
        (8, get("k"), 22, 23, value("B")),
    ];
    assert_durable(
        &healed_history(&rows, Some(10)),
        r#"
violated
key "k": no order explains these 4 of its 4 operations (times in ms)
  c1  put "A"  0.001000 – 0.005000  written
  c2  put "B"  0.002000 – 0.006000  written
  c9  get      0.020000 – 0.021000  returned "A"
  c8  get      0.022000 – 0.023000  returned "B"
get by c8 returned "B" after get by c9 had returned "A", and nobody wrote "B" again
"#,
    );
}

#[test]
fn a_key_that_a_scan_missed() {
    let rows = [
        (1, put("a", "1"), 1, 2, Written),
        (1, put("b", "1"), 3, 4, Written),
        (2, scan(0), 10, 11, page(&["a"], Some(77))),
        (2, scan(77), 12, 13, page(&[], None)),
    ];
    assert_text(
        &scans::judge(&history(&rows)).to_string(),
        r#"
violated
key "b": a scan missed a key that was there throughout (times in ms)
  c1  put "1"       0.003000 – 0.004000  written
  c2  scan from 0   0.010000 – 0.011000  1 keys, next 77
  c2  scan from 77  0.012000 – 0.013000  0 keys, the end
put "1" by c1 had completed before the scan by c2 began and no delete followed, yet key "b" is on none of the scan's 2 pages
"#,
    );
}
