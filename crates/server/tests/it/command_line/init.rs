//! `init`, and the directories `server` refuses.

use crate::support::run::quorate;
use std::fs;
use std::path::Path;

fn init(output: &Path, more: &[&str]) -> crate::support::run::Said {
    let output = output.display().to_string();
    let mut args = vec!["init", "--output", &output];
    args.extend(more);
    quorate(&args)
}

const THREE: [&str; 6] =
    ["--host", "127.0.0.1:18411", "--host", "127.0.0.1:18421", "--host", "127.0.0.1:18431"];

#[test]
fn a_cluster_is_written_once() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut args = THREE.to_vec();
    args.extend(["--format", "json"]);
    let said = init(place.path(), &args);
    assert_eq!(said.code, 0, "{said:?}");
    let cluster = said.json();
    assert_eq!(cluster["hosts"][2]["host"], 3);
    assert_eq!(cluster["hosts"][2]["resp"], "127.0.0.1:18433");
    let data = cluster["hosts"][2]["data"].as_str().expect("a path").to_owned();
    let shown = quorate(&["config", "show", "--data", &data]);
    assert!(shown.out.contains("bind = \"127.0.0.1:18433\""), "{shown:?}");
    let again = init(place.path(), &THREE);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.err.contains("is not empty"), "{again:?}");
}

#[test]
fn clusters_that_cannot_be_are_refused() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let one = ["--host", "127.0.0.1:18411"];
    let cases: [(&[&str], &str); 9] = [
        (&[], "--host"),
        (&["--host", "127.0.0.1:18411", "--host", "127.0.0.1:18411"], "same address"),
        (&["--host", "127.0.0.1:18411", "--host", "localhost:18412"], "http door of host 1"),
        (&["--host", "10.0.0.1,10.0.0.2"], "--host 10.0.0.1 --host 10.0.0.2"),
        (&["--host", "10.0.0.256"], "IP address or a name"),
        (&["--host", "nowhere:port"], "HOST:PORT"),
        (&[one[0], one[1], "--keyspace", "x=fast"], "linearizable"),
        (&[one[0], one[1], "--keyspace", "Bad=linearizable"], "not allowed"),
        (&[one[0], one[1], "--durability", "periodic=0ms"], "periodic"),
    ];
    for (args, part) in cases {
        let said = init(place.path(), args);
        assert_eq!(said.code, 2, "{args:?}: {said:?}");
        assert!(said.err.contains(part), "{args:?}: {said:?}");
    }
    assert_eq!(fs::read_dir(place.path()).expect("it is there").count(), 0);
}

#[test]
fn a_host_refuses_a_directory_that_is_none() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let said = quorate(&["server", "--data", &place.path().display().to_string()]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("quorate init"), "{said:?}");
}

#[test]
fn a_damaged_identity_is_corruption() {
    let place = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(init(place.path(), &THREE).code, 0);
    let host = place.path().join("host-2");
    let identity = host.join("identity.toml");
    let text = fs::read_to_string(&identity).expect("it was written");
    fs::write(&identity, text.replace("linearizable", "linearizablE")).expect("it is changed");
    let said = quorate(&["server", "--data", &host.display().to_string()]);
    assert_eq!(said.code, 9, "{said:?}");
    assert!(said.err.contains("damaged"), "{said:?}");
}

#[test]
fn a_newer_format_is_refused() {
    let place = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(init(place.path(), &THREE).code, 0);
    let host = place.path().join("host-1");
    fs::write(host.join("format"), "quorate data directory format 99\n").expect("it is changed");
    let said = quorate(&["server", "--data", &host.display().to_string()]);
    assert_eq!(said.code, 9, "{said:?}");
    assert!(said.err.contains("format 99"), "{said:?}");
}
