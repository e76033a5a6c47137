//! `lab`: every figure is made, small, and its tables and pictures are well-formed. Nothing is said
//! of times.

use crate::run::quorate;
use std::path::Path;

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
    let said = quorate(&["lab", "cats", "--quick", "--port-base", "21700", "--output", &text]);
    assert_eq!(said.code, 0, "{said:?}");
    for figure in 3..=7 {
        let read = |ending: &str| {
            std::fs::read_to_string(output.join(format!("fig{figure}.{ending}"))).expect("written")
        };
        check_picture(&read("svg"));
        let page = read("md");
        assert!(page.starts_with(&format!("# Figure {figure}: ")), "{page}");
        assert!(page.contains("quorate lab cats --quick"), "it says how it was made");
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
fn a_figure_that_is_not_repeated_is_refused() {
    let said = quorate(&["lab", "cats", "--figure", "8"]);
    assert_eq!(said.code, 2, "{said:?}");
}
