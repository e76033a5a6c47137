//! Each rule on small trees: it fires on what is wrong, and passes what is right.

use super::measured::{lengths, names, ratchet};
use super::source::Source;
use super::tree::Tree;
use super::{Finding, arrows, engines, glossary, marks, planted, pure, words};

type Rule = fn(&Tree) -> Vec<Finding>;

/// Asserts that `rule` finds nothing in `files`.
#[track_caller]
pub(super) fn passes(rule: Rule, files: &[(&str, &str)]) {
    assert_eq!(rule(&Tree::of(files)), []);
}

/// Asserts that `rule` finds one place in `files`, at `place`, and says `part` about it.
#[track_caller]
pub(super) fn fires(rule: Rule, files: &[(&str, &str)], place: &str, part: &str) {
    let findings: Vec<String> = rule(&Tree::of(files)).iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert!(findings[0].starts_with(&format!("{place}: ")), "{findings:#?}");
    assert!(findings[0].contains(part), "{findings:#?}");
}

#[test]
fn arrows_point_down() {
    let below = "[dependencies]\nquorate-kernel.workspace = true\nbytes = \"1\"\n";
    passes(arrows::check, &[("crates/node/Cargo.toml", below)]);

    let up = "[dependencies]\nbytes = \"1\"\n\nquorate-node.workspace = true\n";
    fires(arrows::check, &[("crates/kernel/Cargo.toml", up)], "crates/kernel/Cargo.toml:4", "node");

    let sideways = "[dev-dependencies]\nquorate-store = { path = \"../store\" }\n";
    let path = "crates/doors/Cargo.toml";
    fires(arrows::check, &[(path, sideways)], "crates/doors/Cargo.toml:2", "may use kernel");

    let renamed = "[target.'cfg(unix)'.dependencies]\nk = { package = \"quorate-sim\" }\n";
    let path = "crates/store/Cargo.toml";
    fires(arrows::check, &[(path, renamed)], "crates/store/Cargo.toml:1", "store depends on sim");
}

#[test]
fn a_crate_without_a_place_among_the_arrows_is_named() {
    let path = "crates/extra/Cargo.toml";
    fires(arrows::check, &[(path, "")], "crates/extra/Cargo.toml:1", "arrows.rs");
    fires(arrows::check, &[("crates/node/Cargo.toml", "[")], "crates/node/Cargo.toml:1", "TOML");
}

/// A tree in which every pure crate is as it should be.
const PURE: [(&str, &str); 12] = [
    ("crates/kernel/Cargo.toml", "[dependencies]\nbytes.workspace = true\n"),
    ("crates/kernel/src/lib.rs", "#![no_std]\n#[cfg(test)]\nextern crate std;\n"),
    (
        "crates/protocols/src/lib.rs",
        "#![no_std]\n#[cfg(any(test, feature = \"testing\"))]\nextern crate std;\n",
    ),
    ("crates/merkle/src/lib.rs", "#![no_std]\n"),
    ("crates/protocols/src/causal/tests.rs", "extern crate std;\n"),
    ("crates/kernel/src/mutant.rs", "#[cfg(quorate_mutants)]\nextern crate std;\n"),
    ("crates/node/src/lib.rs", "#![no_std]\n#[cfg(test)]\nmod tests { extern crate std; }\n"),
    ("crates/node/Cargo.toml", "[dev-dependencies]\nserde = \"1\"\n"),
    ("crates/doors/src/lib.rs", "#![no_std]\n"),
    ("crates/doors/Cargo.toml", "[dependencies]\nquorate-kernel.workspace = true\n"),
    ("crates/check/src/lib.rs", "#![no_std]\n"),
    (
        "Cargo.toml",
        "[workspace.dependencies]\nbytes = { version = \"1\", default-features = false }",
    ),
];

/// [`PURE`] with the file at `path` replaced by `text`.
fn pure_but<'a>(path: &'a str, text: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut files = PURE.to_vec();
    files.retain(|(each, _)| *each != path);
    files.push((path, text));
    files
}

#[test]
fn pure_crates_are_no_std() {
    passes(pure::check, &PURE);
    let path = "crates/doors/src/lib.rs";
    for text in ["", "// #![no_std]\n", "#![cfg_attr(not(test), no_std)]\n"] {
        fires(pure::check, &pure_but(path, text), "crates/doors/src/lib.rs:1", "#![no_std]");
    }
    let text = "#![no_std]\nextern crate alloc;\nextern crate std;\n";
    fires(pure::check, &pure_but(path, text), "crates/doors/src/lib.rs:3", "extern crate std");
}

#[test]
fn pure_crates_use_no_default_features() {
    let path = "crates/check/Cargo.toml";
    for (text, line) in [
        ("[dependencies]\nbytes = \"1\"\n", 2),
        ("[dependencies]\n\nbytes = { version = \"1\" }\n", 3),
        ("[dependencies.bytes]\nversion = \"1\"\n", 1),
        ("[dependencies]\nbytes = { workspace = true, default-features = true }\n", 2),
        ("[dependencies]\nserde.workspace = true\n", 2),
    ] {
        let place = format!("crates/check/Cargo.toml:{line}");
        fires(pure::check, &pure_but(path, text), &place, "default-features = false");
    }
    let off = "[dependencies]\nbytes = { version = \"1\", default-features = false }\n";
    passes(pure::check, &pure_but(path, off));
}

#[test]
fn unfinished_code_is_found() {
    let right = "// Nothing is left to do.\nfn a() { let todo = \"dbg!(1) FIXME\"; drop(todo); }\n";
    passes(words::check, &[("crates/a/src/lib.rs", right)]);
    for (text, part) in [
        ("\nfn a() { todo!() }", "todo!"),
        ("\nfn a() { core::unimplemented!(\"later\") }", "unimplemented!"),
        ("\nfn a() { dbg!(1); }", "dbg!"),
        ("fn a() {}\n/* FIXME later */", "FIXME"),
        ("fn a() {}\n// TODO later", "TODO"),
    ] {
        fires(words::check, &[("crates/a/src/lib.rs", text)], "crates/a/src/lib.rs:2", part);
    }
}

#[test]
fn unsafe_has_its_places() {
    let text = "// unsafe is a word here\nfn a() { unsafe { b() } }";
    passes(words::check, &[("crates/host/src/io.rs", text)]);
    passes(words::check, &[("crates/kernel/src/invariant.rs", text)]);
    fires(words::check, &[("crates/sim/src/a.rs", text)], "crates/sim/src/a.rs:2", "host");
}

#[test]
fn mutants_and_their_list_agree() {
    let code = "fn a() {\n    if mutant!(\"no_sync\") { return; }\n}\n";
    let list = "# comment\nno_sync | crash | 0..9 | durability\n";
    let path = "crates/node/src/gate.rs";
    passes(planted::check, &[(path, code), ("xtask/mutants.txt", list)]);
    fires(planted::check, &[(path, code)], "crates/node/src/gate.rs:2", "no_sync is not in");
    fires(planted::check, &[("xtask/mutants.txt", list)], "xtask/mutants.txt:2", "no code has");

    let list = "no_sync | quorate-node | rooms::gate::tests::syncs\n";
    let [listed, planted] = [("xtask/mutants.txt", list), (path, code)];
    let test = "mod tests {\n    #[test]\n    fn syncs() {}\n}\n";
    for right in ["rooms/gate.rs", "rooms/gate/mod.rs", "rooms/gate/tests.rs"] {
        let place = format!("crates/node/src/{right}");
        passes(planted::check, &[planted, listed, (&place, test)]);
    }
    for (elsewhere, test) in [("gate.rs", test), ("rooms/gate.rs", "fn syncs_not() {}")] {
        let place = format!("crates/node/tests/{elsewhere}");
        let files = [planted, listed, (&place[..], test)];
        fires(planted::check, &files, "xtask/mutants.txt:1", "has the test");
    }
}

fn ratcheted(tree: &Tree) -> Vec<Finding> {
    ratchet::check("list.txt", tree, &lengths::measure(tree))
}

/// A function `f` of `line_count` lines.
fn function(line_count: usize) -> String {
    format!("fn f() {{\n{}}}\n", "    g();\n".repeat(line_count - 2))
}

#[test]
fn marks_of_rare_paths_are_required_or_argued() {
    let (path, list_path) = ("crates/protocols/src/x/y.rs", "crates/sim/probes.txt");
    let code = "fn f() {\n    probe!(\"x/seen\");\n    probe!(\"y/odd\");\n}\n";
    let list = "# marks\nx/seen\ny/* | no scenario has a y\n";
    passes(marks::check, &[(path, code), (list_path, list)]);
    let fires =
        |code, list, at, says| fires(marks::check, &[(path, code), (list_path, list)], at, says);
    fires(code, "x/seen\n", "crates/protocols/src/x/y.rs:3", "y/odd is not in");
    fires(code, "x/seen\ny/odd |\n", "crates/sim/probes.txt:2", "say why");
    fires("", "x/seen\n", "crates/sim/probes.txt:1", "no code has");
    passes(marks::check, &[("crates/kernel/src/z.rs", "fn f() { probe!(\"test/mark\"); }\n")]);
}

#[test]
fn lengths_have_limits() {
    for (short, long, place, part) in [
        ("a();\n".repeat(400), "a();\n".repeat(401), "a.rs:1", "file has 401 lines"),
        (function(70), "\n".to_owned() + &function(71), "a.rs:2", "function has 71 lines"),
        ("é".repeat(100), "\n".to_owned() + &"é".repeat(101), "a.rs:2", "line has 101 columns"),
    ] {
        passes(ratcheted, &[("a.rs", &short)]);
        fires(ratcheted, &[("a.rs", &long)], place, part);
        passes(ratcheted, &[("a.json", &long)]);
    }
}

#[test]
fn each_long_line_is_named_but_one_exception_covers_them() {
    let text = format!("{}\nshort\n{}\n", "a".repeat(105), "b".repeat(110));
    let findings: Vec<usize> =
        ratcheted(&Tree::of(&[("a.rs", &text)])).iter().map(|f| f.line).collect();
    assert_eq!(findings, [1, 3]);
    passes(ratcheted, &[("a.rs", &text), ("list.txt", "columns | a.rs | 110\n")]);
    let row = format!("    /// | {} |\n", "a".repeat(100));
    passes(ratcheted, &[("a.rs", &row)]);
}

#[test]
fn a_folder_has_few_files() {
    let folder = |count: usize| {
        let paths: Vec<String> = (0..count).map(|index| format!("src/a/{index}.rs")).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (&path[..], "")).collect();
        Tree::of(&files)
    };
    let beside = folder(15).and("src/a/b/mod.rs", "").and("src/a/list.txt", "");
    assert_eq!(ratcheted(&beside), []);
    let [finding] = &ratcheted(&folder(16))[..] else { panic!("it is one place") };
    assert_eq!((&finding.path[..], finding.line), ("src/a", 1));
    assert!(finding.message.contains("folder has 16 files"), "{}", finding.message);
}

#[test]
fn exceptions_are_listed_and_only_shrink() {
    let (old, grown) = (function(80), function(81));
    let list = "# why\n\nfunction | a.rs::f | 80\n";
    passes(ratcheted, &[("a.rs", &old), ("list.txt", list)]);
    fires(ratcheted, &[("a.rs", &grown), ("list.txt", list)], "a.rs:1", "may only shrink");

    let shrunk = function(75);
    let files = [("a.rs", shrunk.as_str()), ("list.txt", list)];
    fires(ratcheted, &files, "list.txt:3", "has shrunk to 75");
    let tightened = ratchet::tighten(list, &lengths::measure(&Tree::of(&files)));
    assert_eq!(tightened, "# why\n\nfunction | a.rs::f | 75\n");
    passes(ratcheted, &[("a.rs", &shrunk), ("list.txt", &tightened)]);

    let met = function(70);
    let files = [("a.rs", met.as_str()), ("list.txt", list)];
    fires(ratcheted, &files, "list.txt:3", "drop this line");
    assert_eq!(ratchet::tighten(list, &lengths::measure(&Tree::of(&files))), "# why\n\n");
}

#[test]
fn exceptions_have_a_hard_limit_and_a_form() {
    let file = "a();\n".repeat(801);
    let files = [("a.rs", file.as_str()), ("list.txt", "file | a.rs | 801\n")];
    fires(ratcheted, &files, "list.txt:1", "may exceed 800");
    for wrong in ["file | a.rs", "file | a.rs | many", "width | a.rs | 101"] {
        let findings = ratcheted(&Tree::of(&[("list.txt", wrong)]));
        assert_eq!(findings.len(), 1, "{wrong}");
    }
}

#[test]
fn tightening_never_loosens() {
    let grown = function(90);
    let tree = Tree::of(&[("a.rs", &grown)]);
    let list = "function | a.rs::f | 80\n";
    assert_eq!(ratchet::tighten(list, &lengths::measure(&tree)), list);
}

fn named(tree: &Tree) -> Vec<Finding> {
    let tree = &tree.and(engines::LIST, engines::tests::LISTED);
    ratchet::check("list.txt", tree, &names::measure(tree))
}

#[test]
fn an_engine_is_named_by_its_own_files_alone() {
    let path = "crates/doors/src/keys.rs";
    for text in [
        "match engine {\n    \"causal\" => 1,\n}",
        "// other\nuse quorate_kernel::causal::Ask;",
        "\nfn f(_: CausalSection) {}",
    ] {
        let text = text.replacen('\n', " \n", 1);
        fires(named, &[(path, &text)], &format!("{path}:2"), "names engines with 1 words");
        let exception = ("list.txt", &*format!("names | {path} | 1\n"));
        assert!(!named(&Tree::of(&[(path, &text), exception])).is_empty(), "there is none");
        for own in [
            "crates/protocols/src/causal/rules.rs",
            "crates/check/src/causal.rs",
            "crates/doors/src/tests/keys.rs",
            "crates/doors/tests/keys.rs",
            "crates/lab/src/keys.rs",
        ] {
            passes(named, &[(own, &text)]);
        }
    }
    for harmless in ["// causal\n", "fn causality() {}", "#[cfg(test)]\nmod t { use causal; }\n"] {
        passes(named, &[(path, harmless)]);
    }
}

#[test]
fn the_line_that_makes_a_twin_known_may_name_it() {
    let folder = "crates/client/src/lib.rs";
    let list =
        format!("use crate::causal;\n{}\nfn key() {{ causal::key() }}\n", engines::tests::LISTED);
    let tree = Tree::of(&[(engines::LIST, &list)]);
    let found = ratchet::check("list.txt", &tree, &names::measure(&tree));
    assert_eq!(found.len(), 1, "the list alone may: {found:#?}");
    let client = "clients/python/src/quorate/_tries.py";
    passes(named, &[(client, "# causal: \"causal\"\n")]);
    fires(named, &[(client, "\nif it == \"causal\":\n")], &format!("{client}:2"), "1 words");
    for known in ["mod causal;\n", "pub use causal::Causal;\n"] {
        passes(named, &[(folder, known)]);
        let finding = "crates/client/src/hosts.rs";
        assert!(!named(&Tree::of(&[(finding, known)])).is_empty(), "{known}");
    }
    fires(named, &[(folder, "use causal::Causal;\n")], &format!("{folder}:1"), "2 words");
    let list = "crates/sim/src/scenarios/shipped.rs";
    let there = ("crates/sim/scenarios/causal-calm.toml", "");
    passes(named, &[(list, "[\"causal-calm\"]\n"), there]);
    fires(named, &[(list, "[\"causal-loss\"]\n"), there], &format!("{list}:1"), "1 words");
    fires(named, &[(list, "causal-calm\n"), there], &format!("{list}:1"), "1 words");
    passes(named, &[("crates/doors/src/keys.rs", "fn f(_: CausalContext) {}\n")]);
}

#[test]
fn a_word_of_the_glossary_has_one_row() {
    let head = "# A\n## Words\n\n| word | what it is |\n|---|---|\n| host | a process |\n";
    let after = "\n## Map\n| host | x |\n|---|---|\n| host | y |\n";
    passes(glossary::check, &[("ARCHITECTURE.md", &format!("{head}| node | one |{after}"))]);
    let table = [
        ("| Host | a machine |", "has a row already, in line 6"),
        ("| node | |", "one is missing"),
        ("| node |", "a row is"),
    ];
    for (row, message) in table {
        let text = format!("{head}{row}{after}");
        fires(glossary::check, &[("ARCHITECTURE.md", &text)], "ARCHITECTURE.md:7", message);
    }
    fires(glossary::check, &[("ARCHITECTURE.md", after)], "ARCHITECTURE.md:1", "is missing");
}

#[test]
fn sources_are_split_into_code_and_comments() {
    for (text, code, comments) in [
        ("a // b", "a     ", "  // b"),
        ("a /* b /* c */ d */ e", "a                   e", "  /* b /* c */ d */  "),
        (r#"f("a // \" b") // c"#, r#"f("         ")     "#, r#"               // c"#),
        (r##"r#"a " b"# c"##, r##"r#"     "# c"##, r##"            "##),
        (r#"br"{" d"#, r#"br" " d"#, "       "),
        ("'{' 'a '\\'' b", "' ' 'a '  ' b", "             "),
        ("for\"x\"", "for\" \"", "      "),
    ] {
        let source = Source::new(text);
        assert_eq!(source.code, code, "{text}");
        assert_eq!(source.comments, comments, "{text}");
    }
}

#[test]
fn functions_are_measured_whole() {
    let text = "trait T { fn none(&self); }\nstruct S { f: fn(u8) -> u8 }\n\
                fn one(a: [u8; 2]) -> u8 { '}'; a[0] }\n\
                fn two<F>(f: F)\nwhere\n    F: Fn(),\n{\n    let s = \"}\";\n    f();\n}\n";
    let found: Vec<_> = Source::new(text)
        .functions()
        .into_iter()
        .map(|function| (function.name, function.line, function.line_count))
        .collect();
    assert_eq!(found, [("one".to_owned(), 3, 1), ("two".to_owned(), 4, 7)]);
}
