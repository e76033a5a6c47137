//! `config`: precedence as a user sees it, and errors that help.

use crate::support::run::{command, finish, quorate};
use std::fs;

#[test]
fn the_reference_is_a_configuration_that_passes_the_check() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let reference = quorate(&["config", "reference"]);
    assert_eq!(reference.code, 0);
    let path = place.path().join("quorate.toml");
    fs::write(&path, &reference.out).expect("a temporary file");
    let path = path.display().to_string();
    let checked = quorate(&["config", "check", "--config", &path]);
    assert_eq!((checked.code, checked.out.as_str()), (0, "ok\n"), "{checked:?}");
}

#[test]
fn each_source_beats_the_one_before_and_is_named() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).expect("a temporary file");
        path.display().to_string()
    };
    let first = file("a.toml", "[store]\ncache = \"1MiB\"\nmemtable = \"1MiB\"\n");
    let second = file("b.toml", "[store]\nmemtable = \"2MiB\"\n[log]\nlevel = \"warn\"\n");
    let mut show = command(&["config", "show", "--origin", "--config", &first]);
    show.args(["--config", &second, "--resp", "127.0.0.1:9"]);
    show.env("QUORATE_LOG__LEVEL", "debug").env("QUORATE_RESP__BIND", "127.0.0.1:8");
    let said = finish(show);
    assert_eq!(said.code, 0, "{said:?}");
    for line in [
        format!("cache = \"1MiB\"  # {first}"),
        format!("memtable = \"2MiB\"  # {second}"),
        String::from("level = \"debug\"  # environment QUORATE_LOG__LEVEL"),
        String::from("bind = \"127.0.0.1:9\"  # flag --resp"),
        String::from("format = \"auto\"  # default"),
    ] {
        assert!(said.out.lines().any(|found| found == line), "{line} is missing in {}", said.out);
    }
}

#[test]
fn mistakes_are_named_with_what_was_meant() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join("x.toml");
    fs::write(&path, "[http]\nbnid = \"127.0.0.1:1\"\n").expect("a temporary file");
    let said = quorate(&["config", "check", "--config", &path.display().to_string()]);
    assert_eq!(said.code, 8);
    assert!(said.err.contains("unknown setting http.bnid; did you mean http.bind?"), "{said:?}");
    let said = quorate(&["config", "check", "--set", "limits.request_timeout=5"]);
    assert_eq!(said.code, 8);
    assert!(said.err.contains("expected a length of time"), "{said:?}");
    let mut by_variable = command(&["config", "check"]);
    by_variable.env("QUORATE_STORE__CAHCE", "1MiB");
    let said = finish(by_variable);
    assert_eq!(said.code, 8);
    assert!(said.err.contains("environment QUORATE_STORE__CAHCE"), "{said:?}");
}

#[test]
fn what_a_host_would_refuse_is_no_good_configuration() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = place.path().display().to_string();
    let made = quorate(&["init", "--output", &output, "--host", "127.0.0.1:18511"]);
    assert_eq!(made.code, 0, "{made:?}");
    let data = format!("{output}/host-1");
    for (set, part) in [
        ("http.bind=127.0.0.1:18511", "the http door and the cluster door would both listen"),
        ("cluster.addresses=127.0.0.1:1,127.0.0.1:2", "has 2 addresses for 1 hosts"),
        ("limits.request_timeout=0s", "above zero"),
        ("cluster.advertise=0.0.0.0:18511", "none to connect to"),
    ] {
        for verb in [&["config", "check"][..], &["server"]] {
            let said = quorate(&[verb, &["--data", &data, "--set", set]].concat());
            assert_eq!(said.code, 8, "{verb:?} {set}: {said:?}");
            assert!(said.err.contains(part), "{verb:?} {set}: {said:?}");
        }
    }
    assert_eq!(quorate(&["config", "check", "--data", &data]).code, 0);
}

#[test]
fn doors_that_others_can_reach_need_consent() {
    let open = ["config", "check", "--http", "0.0.0.0:7412"];
    let said = quorate(&open);
    assert_eq!(said.code, 8);
    assert!(said.err.contains("--insecure"), "{said:?}");
    let mut consent = open.to_vec();
    consent.push("--insecure");
    assert_eq!(quorate(&consent).code, 0);
}
