//! Commands that the README, help and other commands print, run as they are printed: only
//! addresses are replaced, and where doors of clients listen is set beside them.

use crate::elastic::{groups, ring};
use crate::native::http::ask_once;
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::run::{Said, finish, quorate, shell};
use serde_json::json;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const README: &str = include_str!("../../../../../README.md");

/// The command of the README that begins so, without the remark behind it.
fn readme(begin: &str) -> &'static str {
    let line = README.lines().find(|line| line.starts_with(begin));
    let line = line.unwrap_or_else(|| panic!("the README prints no {begin}"));
    line.split_once(" #").map_or(line, |(command, _)| command).trim()
}

/// All of a directory is its owner's alone.
pub fn must_be_closed(path: &Path) {
    let metadata = fs::symlink_metadata(path).expect("it is there");
    let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
    let found = metadata.permissions().mode() & 0o777;
    assert_eq!(found, expected, "{found:o} is not {expected:o}: {}", path.display());
    if metadata.is_dir() {
        for entry in fs::read_dir(path).expect("it can be read") {
            let path = entry.expect("an entry").path();
            // Hosts that run take files away.
            if path.exists() {
                must_be_closed(&path);
            }
        }
    }
}

/// A cluster of three, and the place where its operator types.
struct Place {
    cluster: Cluster,
}

impl Place {
    /// A line with the addresses of this cluster, ready to run.
    fn line(&self, line: &str) -> Command {
        let line = line.replace("10.0.0.4:7411", &self.cluster.cluster(4));
        let line = line.replace("10.0.0.1:7412", &self.cluster.http(1));
        let line = line.replace("HOST:PORT", &self.cluster.http(1));
        let mut shell = shell(&line);
        shell.current_dir(self.cluster.place().join("data"));
        shell.env("QUORATE_HTTP", self.cluster.http(1));
        shell.env("QUORATE_HTTP__BIND", self.cluster.http(4));
        shell.env("QUORATE_RESP__BIND", self.cluster.resp(4));
        shell.env("QUORATE_GRPC__BIND", self.cluster.grpc(4));
        shell
    }

    fn run(&self, line: &str) -> Said {
        finish(self.line(line))
    }

    fn must_run(&self, line: &str) -> Said {
        let said = self.run(line);
        assert_eq!(said.code, 0, "{line}: {said:?}");
        said
    }

    /// Starts a host that ends with the test.
    fn launch(&self, line: &str) -> Launched {
        let me = std::process::id();
        let mut command = self.line(&format!("exec {line} --exit-with {me}"));
        let log = self.cluster.place().join("launched.log");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(&log).expect("a log file"));
        Launched(command.spawn().expect("it starts"))
    }

    /// Starts a host by a line and waits until it serves.
    fn start(&self, line: &str) -> Launched {
        let mut launched = self.launch(line);
        let output = launched.0.stdout.take().expect("a pipe was asked for");
        let mut ready = String::new();
        BufReader::new(output).read_line(&mut ready).expect("the output is text");
        let log = fs::read_to_string(self.cluster.place().join("launched.log"));
        assert!(ready.contains(&self.cluster.resp(4)), "{line}: {ready:?}, {log:?}");
        launched
    }

    /// The node of the host that is the fourth now, as the first one knows it.
    fn fourth(&self) -> Option<String> {
        let (ring, address) = (ring(&self.cluster.http(1)), self.cluster.cluster(4));
        let mut hosts = ring["hosts"].as_array()?.iter();
        let host = hosts.find(|it| it["address"] == *address && it["standing"] != "left")?;
        host["node"].as_str().map(str::to_owned)
    }
}

/// A host that was started by a line.
struct Launched(Child);

impl Drop for Launched {
    fn drop(&mut self) {
        // Killing what has ended already fails, and does no harm.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_cluster_grows_and_shrinks_as_the_readme_says() {
    let mut cluster = Cluster::create("sync");
    (1..=3).for_each(|host| must_be_closed(cluster.data(host)));
    cluster.start_all();
    for host in 1..=3 {
        must_be_closed(cluster.data(host));
        assert!(!cluster.said(host).contains("closed_to_others"), "{}", cluster.said(host));
    }
    let mut place = Place { cluster };
    let directory = place.cluster.place().join("data/host-4");
    let secret = place.cluster.place().join("data/cluster.secret");
    must_be_closed(&secret);
    let join = readme("quorate server --data host-4");
    joins_off_loopback_need_no_consent(&place, join);
    let joined = place.start(join);
    must_be_closed(&directory);
    keyspaces_come_and_go(&place);
    let svg = readme("quorate ring --format svg");
    place.must_run(svg);
    let drawn = fs::read_to_string(place.cluster.place().join("data/ring.svg"));
    assert!(drawn.expect("it was written").contains("</svg>"));
    drop(joined);
    let rejoined = the_advice_of_rejoin_is_followed(&place, &directory);
    a_host_is_drained_and_removed(&place, rejoined);
    place.must_run(readme("quorate shutdown --http"));
    for host in 1..=3 {
        assert_eq!(place.cluster.ended(host), Some(0), "{}", place.cluster.said(host));
        must_be_closed(place.cluster.data(host));
    }
    a_host_that_knows_no_keyspaces_says_that_it_is_starting(&place);
}

/// The join of an address that no machine of a test has: all goes well until the host is to listen
/// there. Its directory is kept for later.
fn joins_off_loopback_need_no_consent(place: &Place, join: &str) {
    let help = quorate(&["server", "--help"]).out;
    let words =
        |text: &str| text.replace("\\\n", "").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&help).contains(join), "help and README print the same: {help}");
    let typed =
        help.lines().skip_while(|line| !line.trim().starts_with("quorate server --data host-4"));
    let typed: Vec<&str> = typed.take(2).collect();
    let typed = typed.join("\n").replace("10.0.0.4:7411", "192.0.2.4:7411");
    let said = place.run(&typed);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("the cluster door cannot listen on 192.0.2.4:7411"), "{said:?}");
    let data = place.cluster.place().join("data");
    assert!(data.join("host-4/identity.toml").exists(), "the cluster let it in");
    fs::rename(data.join("host-4"), data.join("early")).expect("a free name");

    // Doors of clients need it as before.
    let open = format!("{join} --http 10.0.0.4:7412");
    let said = place.run(&open);
    assert_eq!(said.code, 8, "{said:?}");
    assert!(said.err.contains("the http door would listen on 10.0.0.4:7412"), "{said:?}");
    assert!(!data.join("host-4").exists(), "nothing was written");
}

fn keyspaces_come_and_go(place: &Place) {
    let create = place.must_run(readme("quorate keyspace create sessions"));
    assert_eq!(create.out, "keyspace sessions is made\n");
    assert!(create.err.contains("until 5 hosts are there"), "{create:?}");
    let both = place.must_run(readme("quorate keyspace alter sessions"));
    assert_eq!(both.out, "keyspace sessions is altered\nkeyspace sessions is dropped\n");
}

/// The command that a line prints behind a colon.
fn printed<'a>(said: &'a Said, begin: &str) -> &'a str {
    let line = said.out.lines().find_map(|line| line.strip_prefix(begin)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("{begin}: {said:?}"))
}

fn the_advice_of_rejoin_is_followed(place: &Place, directory: &Path) -> Launched {
    until("the others know it", || place.fourth().is_some());
    let old = place.fourth().expect("as above");
    fs::remove_file(directory.join("mark")).expect("it was there");
    let said = place.must_run("quorate rejoin --data host-4");
    must_be_closed(directory);
    let remove = printed(&said, "First count the old node as gone");
    let join = printed(&said, "Then join again");
    let early = place.run(join);
    assert_eq!(early.code, 1, "{early:?}");
    let advice = format!("quorate remove {old}");
    assert!(early.err.contains(&advice), "the order of the two matters: {early:?}");
    let mut last = Said { code: 0, out: String::new(), err: String::new() };
    until("it is not heard any more, and removed", || {
        last = place.run(remove);
        let waits = last.err.contains("answers; drain it first, or stop it");
        assert!(last.code == 0 || waits, "{last:?}");
        last.code == 0
    });
    assert_eq!(last.out, format!("node {old} is removed\n"));
    let rejoined = place.start(join);
    until("the others know it", || place.fourth().is_some_and(|node| node != old));
    must_be_closed(directory);
    rejoined
}

fn a_host_is_drained_and_removed(place: &Place, joined: Launched) {
    let node = place.fourth().expect("the others know it");
    // Four groups of three: it is in all but one, and nothing moves.
    until("it has taken part", || {
        let groups = groups(&ring(&place.cluster.http(4)));
        let its = groups.iter().filter(|group| group.contains(&node)).count();
        its == 3 && groups.iter().all(|group| group.len() == 3)
    });
    let drain = readme("quorate drain 10.0.0.4:7411");
    let said = place.must_run(drain);
    assert_eq!(said.out, format!("node {node} is drained; it can be stopped and removed\n"));
    let said = place.must_run(&format!("{drain} --format json"));
    assert_eq!(said.json(), json!({ "node": node, "state": "drained" }));
    let said = place.must_run(&format!("{drain} --no-wait --format json"));
    assert_eq!(said.json(), json!({ "node": node, "state": "noted" }));
    drop(joined);
    let remove = readme("quorate remove 10.0.0.4:7411");
    let said = place.must_run(remove);
    assert_eq!(said.out, format!("node {node} is removed\n"));
    let said = place.must_run(&format!("quorate remove {node} --format json"));
    assert_eq!(said.json(), json!({ "node": node, "state": "removed" }));
}

/// Its directory has joined, and there is nobody to tell it more.
fn a_host_that_knows_no_keyspaces_says_that_it_is_starting(place: &Place) {
    let _early = place.launch("quorate server --data early --cluster 10.0.0.4:7411");
    let door = place.cluster.resp(4);
    until("its door is open", || std::net::TcpStream::connect(&door).is_ok());
    let mut client = Client::to(&door);
    let told = "ERR the host is starting and does not know its keyspaces yet; nothing was changed";
    assert_eq!(client.told(&[b"SET", b"k", b"v"]), told);
    assert_eq!(client.told(&[b"SELECT", b"default"]), told);
    assert_eq!(client.told(&[b"PING"]), "PONG");
    let http = place.cluster.http(4);
    let answer = ask_once(&http, "GET /v1/kv/default/k\nAccept: */*", b"");
    assert_eq!((answer.status, answer.kind().as_str()), (503, "overloaded"));
    let what = answer.json()["error"]["what"].clone();
    assert_eq!(what, "the host has not learnt yet which keyspaces there are");
    let ready = ask_once(&http, "GET /readyz\nAccept: */*", b"");
    let text = String::from_utf8_lossy(&ready.body);
    assert!(ready.status == 503 && text.contains("catalog failed: not learnt yet"), "{text}");
    let said = quorate(&["get", "k", "--endpoint", &door, "--keyspace", "default"]);
    assert_eq!(said.code, 5, "the keyspace may be there: {said:?}");
    assert!(said.err.contains("the host is starting"), "{said:?}");
}

/// What `init` and `rejoin` print for doors that other machines can reach is what `server` takes.
#[test]
fn consent_is_printed_where_it_is_needed() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let init = |output: &str, hosts: &[&str]| {
        let hosts: Vec<String> = hosts.iter().map(|host| format!(" --host {host}")).collect();
        let mut line = shell(&format!("quorate init --output {output}{}", hosts.concat()));
        line.current_dir(place.path());
        finish(line)
    };
    // The settings of a line that starts a host, as `server` would judge them.
    let judged = |line: &str| {
        let settings = line.replace("quorate server", "quorate config check");
        let at = settings.find(" --join").unwrap_or(settings.len());
        let consent = if line.contains(" --insecure") { " --insecure" } else { "" };
        let mut settings = settings[..at].replace(" --insecure", "");
        settings.push_str(consent);
        let mut line = shell(&settings);
        line.current_dir(place.path());
        finish(line)
    };
    let inside = init("inside", &["127.0.0.1:19411"]);
    let start = printed(&inside, "Start each host with its directory");
    assert_eq!(start, "quorate server --data inside/host-1");
    assert_eq!(judged(start).code, 0);

    let outside = init("outside", &["10.0.0.1", "10.0.0.2"]);
    let start = printed(&outside, "Start each host with its directory");
    assert_eq!(start, "quorate server --data outside/host-1 --insecure");
    assert_eq!(judged(start).code, 0);
    let without = judged(start.trim_end_matches(" --insecure"));
    assert_eq!(without.code, 8, "{without:?}");
    assert!(without.err.contains("the http door would listen on 10.0.0.1:7412"), "{without:?}");

    let named = init("named", &["kv-1.example", "kv-2.example"]);
    assert_eq!(named.code, 0, "{named:?}");
    for (host, more) in [
        ("inside/host-1", ""),
        ("outside/host-2", " --insecure"),
        ("named/host-2", " --address kv-2.example:7411 --insecure"),
    ] {
        let data = place.path().join(host).display().to_string();
        let said = quorate(&["rejoin", "--force", "--data", &data]);
        let join = printed(&said, "Then join again");
        let begin = format!("quorate server --data {data} --join HOST:PORT");
        assert_eq!(join, format!("{begin} --secret-file cluster.secret{more}"), "{said:?}");
        assert_eq!(judged(join).code, 0, "{join}");
    }
}
