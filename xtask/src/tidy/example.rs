//! An engine takes fewer than 200 lines of code: so the example says, and so it is.
//!
//! What is counted is all of the example's `src`: lines of Rust that are neither blank nor comments
//! nor of its tests.

use super::Finding;
use super::source::{Source, line_of};
use super::tree::Tree;

/// The example engine, from its program's `main` to its value.
const EXAMPLE: &str = "examples/counter/src";

/// How many lines of code are too many.
const LINES_TOO_MANY: usize = 200;

/// Finds an example that has become too long.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let count: usize = tree.below(EXAMPLE, ".rs").map(|(_, text)| lines_of_code(text)).sum();
    if count < LINES_TOO_MANY {
        return Vec::new();
    }
    let message = format!(
        "the example engine has {count} lines of code, and fewer than {LINES_TOO_MANY} are \
         promised; have the kernel's contract do what every engine would have to write"
    );
    vec![Finding::new(EXAMPLE, 1, message)]
}

/// How many lines have code on them that is not of tests.
fn lines_of_code(text: &str) -> usize {
    let source = Source::new(text);
    let mut is_of_tests = vec![false; text.lines().count() + 1];
    for region in source.test_regions() {
        is_of_tests[line_of(text, region.start)..=line_of(text, region.end)].fill(true);
    }
    let lines = source.code.lines().enumerate();
    lines.filter(|(index, line)| !line.trim().is_empty() && !is_of_tests[index + 1]).count()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fires, passes};
    use super::*;

    #[test]
    fn an_example_of_200_lines_is_too_long() {
        let [engine, tally] = ["engine.rs", "tally.rs"].map(|file| format!("{EXAMPLE}/{file}"));
        let rest = "\n\n// a comment\n/// A doc.\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        let code = |count: usize| format!("{}{rest}", "fn f() {}\n".repeat(count));
        let (half, less) = (code(100), code(99));
        passes(check, &[(&engine, &half), (&tally, &less)]);
        fires(
            check,
            &[(&engine, &half), (&tally, &half)],
            &format!("{EXAMPLE}:1"),
            "has 200 lines",
        );
        assert_eq!(lines_of_code("#[cfg(test)]\nmod tests;"), 0);
        assert_eq!(lines_of_code("let a = \"//\";\n#[cfg(test)]\nmod tests {\n}\nfn f() {}\n"), 2);
    }
}
