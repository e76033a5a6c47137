//! Every figure is made, small, and its tables and pictures are well-formed. Nothing is said
//! of times.

#[path = "../../server/tests/it/support/ports.rs"]
mod ports;

use std::path::Path;
use std::process::{Command, Output};

fn lab(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-lab"));
    command.args(args).output().expect("the binary starts")
}

/// Tags nest, quotes close, and nothing is drawn nowhere.
fn check_picture(text: &str) {
    assert!(!text.contains("NaN") && !text.contains("inf"), "a point has a place");
    let mut open: Vec<&str> = Vec::new();
    for piece in text.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').expect("a tag ends");
        assert!(tag.matches('"').count().is_multiple_of(2), "open quotes in {tag:?}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "tags nest"),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split_whitespace().next().expect("a tag has a name")),
        }
    }
    assert!(open.is_empty(), "{open:?} stays open");
    assert!(text.starts_with("<svg") && text.contains("<text"), "it is a picture with words");
}

/// Every row has as many cells as the head, and there is a row. No cell of these has a comma.
fn check_table(path: &Path) {
    let text = std::fs::read_to_string(path).expect("the table is there");
    let mut lines = text.lines().map(|line| line.split(',').count());
    let head = lines.next().expect("a head");
    assert!(lines.clone().count() > 0, "{} has rows", path.display());
    assert!(lines.all(|cells| cells == head), "{}: {text}", path.display());
}

#[test]
fn every_figure_of_cats_is_made() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = place.path().join("cats");
    let text = output.display().to_string();
    let base = ports::base().to_string();
    let said = lab(&["cats", "--quick", "--port-base", &base, "--output", &text]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    for figure in 3..=7 {
        let read = |ending: &str| {
            std::fs::read_to_string(output.join(format!("fig{figure}.{ending}"))).expect("written")
        };
        check_picture(&read("svg"));
        let page = read("md");
        assert!(page.starts_with(&format!("# Figure {figure}: ")), "{page}");
        assert!(page.contains("quorate-lab cats --quick"), "it says how it was made");
        assert!(page.contains("|---:|"), "it has a table");
    }
    for table in
        ["fig3", "fig4", "fig4-costs", "fig5-steps", "fig5-time", "fig6", "fig6-stamps", "fig7"]
    {
        check_table(&output.join(format!("{table}.csv")));
    }
    check_table(&output.join("fig6-throughput.csv"));
    let price = std::fs::read_to_string(output.join("fig6.csv")).expect("written");
    assert!(price.lines().count() == 7 && price.contains("consistent quorums cost"), "{price}");
    let steps = std::fs::read_to_string(output.join("fig5-steps.csv")).expect("written");
    assert!(steps.contains("join 6") && steps.contains("drain 4"), "{steps}");
    let index = std::fs::read_to_string(output.join("README.md")).expect("written");
    assert_eq!(index.matches("(fig").count(), 5, "{index}");
}

#[test]
fn what_encryption_between_hosts_costs_is_told() {
    let base = ports::base().to_string();
    let said = lab(&["door", "--seconds", "1", "--rounds", "1", "--port-base", &base]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    for row in ["refusal of a wrong secret", "a record of 4096 bytes", "put of 100 bytes"] {
        assert!(String::from_utf8_lossy(&said.stdout).contains(row), "{said:?}");
    }
}

#[test]
fn a_figure_that_is_not_repeated_is_refused() {
    let said = lab(&["cats", "--figure", "8"]);
    assert_eq!(said.status.code(), Some(2), "{said:?}");
}

/// The rows of a table without its head, cell by cell.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).expect("the table is there");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn every_figure_of_dotteddb_is_made_and_says_what_the_paper_says() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = place.path().join("dotteddb");
    let text = output.display().to_string();
    let said = lab(&["dotteddb", "--quick", "--threads", "2", "--output", &text]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    for name in ["fig1", "fig2", "fig3", "fig4", "fig5", "table2", "marks"] {
        let read = |ending: &str| {
            std::fs::read_to_string(output.join(format!("{name}.{ending}"))).expect("written")
        };
        check_picture(&read("svg"));
        let page = read("md");
        assert!(page.contains("quorate-lab dotteddb --quick"), "it says how it was made");
        assert!(page.contains("|---:|"), "it has a table");
    }
    for table in ["fig1", "fig1-objects", "fig2", "fig3", "fig4", "fig4-metadata", "fig5", "table2"]
    {
        check_table(&output.join(format!("{table}.csv")));
    }
    let index = std::fs::read_to_string(output.join("README.md")).expect("written");
    assert!(index.contains("(fig5.md)") && index.contains("## The model"), "{index}");

    let number = |row: &[String], at: usize| -> f64 { row[at].parse().expect("a number") };
    // Clocks of the baseline grow with every replaced node, those of DottedDB do not.
    let entries = rows(&output.join("fig1.csv"));
    let last = entries.iter().rfind(|row| row[0] == "3").expect("three replicas");
    assert!(number(last, 2) < 3.0 && number(last, 3) > number(&entries[0], 3), "{entries:?}");
    // Tombstones stay with the baseline, and nothing with DottedDB.
    let stored = rows(&output.join("fig3.csv"));
    let last = stored.last().expect("a row");
    assert_eq!(last[4], "500", "{last:?}");
    assert!(number(last, 1) < 450.0 && number(last, 3) < 50.0, "{last:?}");
    // The baseline sends more of its own wherever there is something to repair. (With so few
    // updates, most of which arrive by themselves, its trees are mostly equal.)
    let traffic = rows(&output.join("fig4.csv"));
    assert_eq!(traffic.len(), 12);
    for at in 0..3 {
        assert!(number(&traffic[at], 3) < number(&traffic[at + 4], 3), "{traffic:?}");
    }
    // Nothing is lost for good, and no update is refused.
    for row in rows(&output.join("fig5.csv")) {
        assert_eq!(row[6], "0", "{row:?}");
    }
    for row in rows(&output.join("table2.csv")) {
        assert!(number(&row, 7) > 500.0 && row[8] == "0", "{row:?}");
    }
    // What two equal replicas exchange; and what differs costs in proportion.
    let equal = rows(&output.join("marks-equal.csv"));
    assert!(number(&equal[0], 1) < 1024.0 && number(&equal[0], 3) < 10.0, "{equal:?}");
    let differ = rows(&output.join("marks-differ.csv"));
    for row in &differ {
        assert!(number(row, 2) < 500.0, "{row:?}");
    }
    assert!(rows(&output.join("marks-lossy.csv"))[0][1].parse::<f64>().is_ok_and(|it| it < 1000.0));
}

#[test]
fn dotteddb_is_measured_on_real_hosts() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = place.path().join("dotteddb");
    let text = output.display().to_string();
    let base = ports::base().to_string();
    let run = ["dotteddb", "--figure", "real", "--quick", "--port-base", &base];
    let said = lab(&[&run[..], &["--output", &text]].concat());
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let read = |file: &str| std::fs::read_to_string(output.join(file)).expect("written");
    check_picture(&read("real.svg"));
    let page = read("real.md");
    assert!(page.contains("quorate-lab dotteddb --figure real --quick"), "{page}");
    assert!(page.contains("on one machine") && !page.contains("in the simulator."), "{page}");
    assert!(read("README.md").contains("(real.md)"), "it is in the list");
    let table = |name: &str| {
        let path = output.join(format!("{name}.csv"));
        check_table(&path);
        let rows = rows(&path);
        let names: Vec<&str> = rows.iter().map(|row| &row[0][..]).collect();
        assert_eq!(names, ["D HH", "D HL", "D LH", "D LL"], "{name}");
        assert!(rows.iter().flatten().all(|cell| !cell.is_empty()), "{rows:?}");
        rows
    };
    let number = |row: &[String], at: usize| -> f64 { row[at].parse().expect("a number") };
    for row in table("real-latency") {
        assert!((1..=4).all(|at| number(&row, at) > 0.0), "{row:?}");
        assert!(number(&row, 8) > 0.0 && row[9] == "0", "{row:?}");
    }
    // Every update that is followed gets to the other host.
    for row in table("real-replication") {
        assert!((2..=5).all(|at| number(&row, at) > 0.0), "{row:?}");
        assert_eq!((&row[6][..], &row[7][..]), ("20", "0"), "{row:?}");
    }
    for row in table("real-traffic") {
        assert!((1..=3).all(|at| number(&row, at) > 0.0), "{row:?}");
    }
    for row in table("real-kept") {
        assert!(number(&row, 2) > 0.0 && number(&row, 6) > 0.0, "{row:?}");
    }
}

#[test]
fn every_figure_of_dataflagons_is_made_and_holes_are_counted() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = place.path().join("dataflagons");
    let text = output.display().to_string();
    let figures = "marks,10,3,7,8,growth,memory";
    let run = ["dataflagons", "--quick", "--threads", "2", "--figure", figures];
    let small = ["--nodes", "20", "--seconds", "6", "--output", &text];
    let said = lab(&[&run[..], &small].concat());
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    for name in ["marks", "fig10", "fig3", "fig7", "fig8", "growth", "memory"] {
        let read = |ending: &str| {
            std::fs::read_to_string(output.join(format!("{name}.{ending}"))).expect("written")
        };
        check_picture(&read("svg"));
        let page = read("md");
        assert!(page.contains(&format!("quorate-lab dataflagons --figure {figures} --quick")));
        assert!(page.contains("|---:|"), "it has a table");
    }
    for table in ["marks", "marks-payloads", "marks-settling", "fig10-reads", "fig10-rest", "fig7"]
    {
        check_table(&output.join(format!("{table}.csv")));
    }
    for table in ["fig7-clients", "fig8", "fig8-messages", "fig8-rounds", "growth", "memory"] {
        check_table(&output.join(format!("{table}.csv")));
    }
    let index = std::fs::read_to_string(output.join("README.md")).expect("written");
    assert!(index.contains("(fig10.md)") && index.contains("## How it is counted"), "{index}");

    let number = |row: &[String], at: usize| -> f64 { row[at].parse().expect("a number") };
    let cell = |row: &[String]| [0, 1, 2].map(|at| row[at].clone());
    let holes = rows(&output.join("fig10.csv"));
    let of = |names: [&str; 3]| holes.iter().find(|row| cell(row) == names).expect("a cell");
    // Two rounds to two others do not reach all; eight rounds to eight do.
    assert!(number(of(["20", "2", "2"]), 6) > 10_000.0, "{holes:?}");
    assert_eq!(number(of(["0", "8", "8"]), 5), 0.0, "{holes:?}");
    for row in &holes {
        assert!(number(row, 7) <= number(row, 6) && number(row, 6) <= number(row, 8), "{row:?}");
    }
    // With an order there is one value from the start, without one at the latest after repair.
    let divided = rows(&output.join("fig3.csv"));
    assert!(number(&divided[0], 5) <= number(&divided[0], 2), "{divided:?}");
    assert_eq!(number(&divided[1], 5), 0.0, "{divided:?}");
    // Payloads apart from balls are less than payloads in all of them.
    for row in rows(&output.join("marks-payloads.csv")) {
        assert!(number(&row, 4) < number(&row, 5), "{row:?}");
    }
}
