//! What needs no cluster: help, usage errors, exit codes, completions, hosts that are away.

use crate::support::run::{command, finish, quorate};
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn help_is_for_the_asking_and_nonsense_is_a_usage_error() {
    assert_eq!(quorate(&["--help"]).code, 0);
    assert_eq!(quorate(&[]).code, 2);
    let typo = quorate(&["statsu"]);
    assert_eq!(typo.code, 2);
    assert!(typo.err.contains("status"), "{typo:?}");
    assert_eq!(quorate(&["dev", "--hosts", "33"]).code, 2);
    assert_eq!(quorate(&["dev", "--durability", "always"]).code, 2);
    assert_eq!(quorate(&["get"]).code, 2);
    let del = quorate(&["del", "--help"]).out;
    let del = del.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(del.contains("The number is no atomic part of the delete"), "{del}");
}

#[test]
fn exit_codes_are_documented() {
    for args in [&["help", "exit-codes"][..], &["exit-codes"]] {
        let said = quorate(args);
        assert_eq!(said.code, 0);
        for line in ["3  the key", "5  no host", "6  the time", "8  a check", "130  inter"] {
            assert!(said.out.contains(line), "{line} is missing in {said:?}");
        }
    }
}

#[test]
fn the_version_names_the_formats() {
    let said = quorate(&["version", "--format", "json"]);
    assert_eq!(said.code, 0);
    let version = said.json();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert!(version["disk_format"].is_u64() && version["frame_version"].is_u64());
}

#[test]
fn every_shell_gets_a_completion_script() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let said = quorate(&["completion", shell]);
        assert_eq!(said.code, 0);
        assert!(said.out.contains("durability"), "{shell}");
    }
}

/// An address nobody listens on: a listener had it and is gone.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}

#[test]
fn a_host_that_is_away_is_no_quorum() {
    let address = nobody();
    for args in [&["get", "k"][..], &["put", "k", "v"], &["del", "k"], &["scan"]] {
        let mut all = args.to_vec();
        all.extend(["--endpoint", &address]);
        let said = quorate(&all);
        assert_eq!(said.code, 5, "{said:?}");
        assert!(said.err.starts_with(&format!("error: {address}: ")), "{said:?}");
    }
    let said = quorate(&["status", "--http", &address]);
    assert_eq!(said.code, 5);
    assert!(said.out.contains("unreachable"), "{said:?}");
}

#[test]
fn the_endpoint_may_come_from_the_environment_and_the_flag_wins() {
    let (away, other) = (nobody(), nobody());
    let mut by_variable = command(&["get", "k"]);
    by_variable.env("QUORATE_ENDPOINT", &away);
    assert!(finish(by_variable).err.contains(&away));
    let mut by_flag = command(&["get", "k", "--endpoint", &other]);
    by_flag.env("QUORATE_ENDPOINT", &away);
    assert!(finish(by_flag).err.contains(&other));
}

/// Takes one connection, reads until `enough`, answers, and gives back what was read.
fn serve(
    answer: &'static [u8],
    enough: &'static [u8],
) -> (String, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client comes");
        let (mut read, mut piece) = (Vec::new(), [0; 1024]);
        while !read.ends_with(enough) {
            match stream.read(&mut piece).expect("the client writes") {
                0 => return read,
                count => read.extend_from_slice(&piece[..count]),
            }
        }
        stream.write_all(answer).expect("the client reads");
        read
    });
    (address, server)
}

#[test]
fn answers_decide_the_exit_code() {
    type Case = (&'static [&'static str], &'static [u8], &'static [u8], i32, &'static str);
    let cases: [Case; 7] = [
        (&["get", "k"], b"$5\r\n\xc3\xbc\nab\r\n", b"k\r\n", 0, "ü\nab"),
        (&["get", "k"], b"$-1\r\n", b"k\r\n", 3, ""),
        (&["get", "k"], b"-NOQUORUM 1 of 2\r\n", b"k\r\n", 5, ""),
        (&["put", "k", "vv"], b"-UNKNOWNOUTCOME late\r\n", b"vv\r\n", 6, ""),
        (&["put", "k", "vv"], b"-ERR no\r\n", b"vv\r\n", 1, ""),
        (&["put", "k", "vv"], b"", b"vv\r\n", 6, ""),
        (&["del", "k"], b":0\r\n", b"k\r\n", 0, "0\n"),
    ];
    for (args, answer, enough, code, out) in cases {
        let (address, server) = serve(answer, enough);
        let mut all = args.to_vec();
        all.extend(["--endpoint", &address]);
        let said = quorate(&all);
        assert_eq!((said.code, said.out.as_str()), (code, out), "{args:?}: {said:?}");
        server.join().expect("the server saw what it waited for");
    }
}

#[test]
fn a_value_may_come_from_standard_input_byte_for_byte() {
    let (address, server) = serve(b"+OK\r\n", b"\x00\xff\n\r\n");
    let mut put = command(&["put", "k", "-", "--endpoint", &address]);
    let said = crate::support::run::feed(&mut put, b"-a\x00\xff\n");
    assert_eq!(said.code, 0, "{said:?}");
    let read = server.join().expect("the server saw what it waited for");
    assert_eq!(read, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\n-a\x00\xff\n\r\n");
}

#[test]
fn a_keyspace_that_is_not_there_is_not_found() {
    let (address, server) = serve(b"-ERR no keyspace nope\r\n", b"nope\r\n");
    let said = quorate(&["get", "k", "--keyspace", "nope", "--endpoint", &address]);
    assert_eq!(said.code, 3, "{said:?}");
    let read = server.join().expect("the server saw what it waited for");
    assert_eq!(read, b"*2\r\n$6\r\nSELECT\r\n$4\r\nnope\r\n");
}
