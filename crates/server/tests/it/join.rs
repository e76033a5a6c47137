//! Joining a running cluster, and what is refused on the way.

use crate::faults::mishaps::copy;
use crate::support::cluster::{Cluster, until};
use crate::support::run::{Said, command, quorate};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

/// Runs a host that is to join, and fails before it serves.
fn join(data: &Path, seed: &str, more: &[&str]) -> Said {
    let data = data.display().to_string();
    let base = crate::support::ports::base();
    let doors = [1, 2, 3, 4, 5].map(|door| format!("127.0.0.1:{}", base + door));
    let mut args = vec!["server", "--data", &data, "--join", seed, "--cluster", &doors[0]];
    args.extend(["--http", &doors[1], "--resp", &doors[2], "--grpc", &doors[3]]);
    args.extend(["--zookeeper", &doors[4]]);
    args.extend(more);
    quorate(&args)
}

fn secret(cluster: &Cluster) -> String {
    cluster.place().join("data/cluster.secret").display().to_string()
}

#[test]
fn a_host_must_show_the_secret_of_the_cluster_that_it_joins() {
    let cluster = Cluster::start("memory");
    let data = cluster.place().join("joiner");
    let (seed, wrong) = (cluster.http(1), cluster.place().join("wrong"));
    let said = join(&data, &seed, &[]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("--secret-file") && said.err.contains("cluster.secret"), "{said:?}");
    fs::write(&wrong, "0".repeat(64)).expect("a file");
    let wrong = wrong.display().to_string();
    let said = join(&data, &seed, &["--secret-file", &wrong]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("no knowledge of the secret of cluster"), "{said:?}");
    fs::write(&wrong, "nonsense").expect("a file");
    let said = join(&data, &seed, &["--secret-file", &wrong]);
    assert!(said.err.contains("64 hexadecimal digits"), "{said:?}");
    assert!(!data.exists(), "nothing was written");
}

#[test]
fn seeds_that_are_none_are_told_apart() {
    let cluster = Cluster::start("memory");
    let data = cluster.place().join("joiner");
    let secret = secret(&cluster);
    let show = ["--secret-file", secret.as_str()];
    let said = join(&data, &cluster.cluster(1), &show);
    assert!(said.err.contains("is no HTTP door"), "{said:?}");
    let said = join(&data, "nowhere", &show);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("HOST:PORT"), "{said:?}");
    let taken = ["--address", &cluster.cluster(2), "--secret-file", &secret];
    let said = join(&data, &cluster.http(1), &taken);
    assert!(said.err.contains("is the address of node"), "{said:?}");
    let several = ["--tokens", "65", "--secret-file", &secret];
    assert_eq!(join(&data, &cluster.http(1), &several).code, 2);
    assert!(!data.exists(), "nothing was written");
}

/// One takes the connection and is silent for ever, one is not there, and one is of a release with
/// another protocol.
#[test]
fn seeds_that_cannot_help_are_told_apart_too() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (data, secret) = (place.path().join("joiner"), place.path().join("secret"));
    fs::write(&secret, "0".repeat(64)).expect("a file");
    let secret = secret.display().to_string();
    let show = ["--secret-file", secret.as_str()];
    let bind = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = |seed: &TcpListener| seed.local_addr().expect("it is bound").to_string();
    let (mute, newer) = (bind(), bind());
    let at = address(&newer);
    std::thread::scope(|scope| {
        // Each is given its time, so at once.
        for seed in [address(&mute), String::from("127.0.0.1:1")] {
            let (data, show) = (&data, &show);
            scope.spawn(move || {
                let said = join(data, &seed, show);
                assert_eq!(said.code, 5, "{said:?}");
                let silent = format!("the seed {seed} did not answer within 10 s");
                assert!(said.err.contains(&silent), "{said:?}");
            });
        }
        scope.spawn(move || {
            let (mut stream, _) = newer.accept().expect("it is asked");
            let _ = stream.read(&mut [0; 4096]).expect("a request");
            let body = r#"{"error":"cluster c1 speaks protocol 9, not 1","protocol":9}"#;
            let head = format!("HTTP/1.1 409 Conflict\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all((head + body).as_bytes()).expect("it is read");
        });
        let said = join(&data, &at, &show);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("speaks protocol 9, not 1; nothing was written"), "{said:?}");
    });
    assert!(!data.exists(), "nothing was written");
}

#[test]
fn a_directory_joins_no_other_cluster() {
    let cluster = Cluster::start("memory");
    let other = Cluster::create("memory");
    let said = join(other.data(1), &cluster.http(1), &[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("belongs to cluster"), "{said:?}");
    assert!(said.err.contains(&format!("the seed {} to cluster", cluster.http(1))), "{said:?}");
    fs::remove_file(other.data(2).join("identity.toml")).expect("it was there");
    fs::write(other.data(2).join("db/file"), "x").expect("a file");
    let said = join(other.data(2), &cluster.http(1), &[]);
    assert_eq!(said.code, 9, "{said:?}");
    assert!(said.err.contains("wiped") && said.err.contains("quorate rejoin"), "{said:?}");
}

#[test]
fn a_refused_directory_is_put_aside_and_a_good_one_is_not() {
    let cluster = Cluster::create("sync");
    let data = cluster.data(2).to_owned();
    let place = data.display().to_string();
    let said = quorate(&["rejoin", "--data", &place]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("nothing is wrong with it"), "{said:?}");
    fs::remove_file(data.join("mark")).expect("it was there");
    let said = quorate(&["rejoin", "--data", &place]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("its mark is gone") && said.out.contains("--join"), "{said:?}");
    assert!(data.join("quorate.toml").exists() && !data.join("identity.toml").exists());
    let aside = data.with_file_name("host-2.refused-1");
    assert!(aside.join("identity.toml").exists(), "the old one is kept");
    let said = quorate(&["rejoin", "--data", &cluster.data(3).display().to_string(), "--force"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = quorate(&["rejoin", "--data", &place]);
    assert_eq!(said.code, 1, "an empty directory was never refused: {said:?}");
}

#[test]
fn one_identity_in_two_places_is_refused_loudly() {
    let mut cluster = Cluster::start("sync");
    cluster.kill(&[3]);
    let twin = cluster.place().join("twin");
    copy(cluster.data(3), &twin);
    cluster.restart(3);
    let (twin, me) = (twin.display().to_string(), std::process::id().to_string());
    let own = cluster.cluster(4);
    let doors = ["--cluster", &own, "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"];
    let mut args = vec!["server", "--data", &twin, "--exit-with", &me];
    args.extend(doors);
    args.extend(["--grpc", "127.0.0.1:0", "--zookeeper", "127.0.0.1:0"]);
    let said = quorate(&args);
    assert_eq!(said.code, 9, "{said:?}");
    assert!(said.err.contains("a copy that was made while its host ran"), "{said:?}");
    args.push("--moved");
    let mut process = command(&args);
    let ended = process.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert_eq!(ended.expect("the binary starts").code(), Some(9), "the others know better");
    until("it is told", || {
        [1, 2].iter().any(|&host| cluster.said(host).contains("runs in two places with start 2"))
    });
    assert_eq!(quorate(&["put", "k", "v", "--endpoint", &cluster.resp(3)]).code, 0);
}
