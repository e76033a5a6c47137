//! Network namespaces of a test's own: one for each host, one for the clients, and one with the
//! bridge that joins them. Packets between hosts are dropped by nft inside the hosts' namespaces.
//!
//! A namespace has a name only until the test holds it open. The kernel removes it, and all links
//! and rules in it, with the last process and the last open file; so nothing is left behind,
//! however a test ends. To look into one: `nsenter --net=/proc/TEST/fd/N`.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The network of the hosts; host `i` has the address `i` in it.
const HOSTS: &str = "10.77.0";
/// The address of the clients.
const CLIENT: &str = "10.77.1.1";
/// The address of relays, which no rule ever drops.
const RELAYS: &str = "10.77.2.1";
/// Where iproute2 keeps namespaces that have names.
const NAMED: &str = "/var/run/netns";

/// Runs a tool with this input.
fn tool(program: &str, args: &[&str], input: &str) -> Result<(), String> {
    let failed = |why: &str| format!("`{program} {}` failed: {why}", args.join(" "));
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(&error.to_string()))?;
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    // A tool that fails before it reads says why.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().map_err(|error| failed(&error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("syntax error"), "a mistake of the test: {said}");
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(said.trim())),
    }
}

/// A network namespace.
pub struct Namespace(File);

impl Namespace {
    fn create() -> Result<Namespace, String> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("quorate-{}-{count}", std::process::id());
        tool("ip", &["netns", "add", &name], "")?;
        let file = File::open(format!("{NAMED}/{name}")).map_err(|error| error.to_string());
        tool("ip", &["netns", "delete", &name], "")?;
        Ok(Namespace(file?))
    }

    /// The namespace that this thread is in.
    fn current() -> Namespace {
        Namespace(File::open("/proc/thread-self/ns/net").expect("each thread is in a namespace"))
    }

    /// Moves this thread there, and with it what it starts from now on: threads and processes.
    pub fn enter(&self) {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("who may make a namespace may enter it");
    }

    /// Does something there; what it starts or opens stays there.
    pub fn within<T>(&self, act: impl FnOnce() -> T) -> T {
        let home = Namespace::current();
        self.enter();
        let result = act();
        home.enter();
        result
    }

    /// Where other processes find it as long as the test has it.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    fn configure(&self, commands: &str) -> Result<(), String> {
        self.within(|| tool("ip", &["-batch", "-"], commands))
    }

    /// Replaces all rules by others.
    fn filter(&self, rules: &str) -> Result<(), String> {
        let table = format!(
            "flush ruleset\n\
             table inet cut {{ chain input {{ type filter hook input priority 0;\n{rules}\n}}\n}}\n"
        );
        self.within(|| tool("nft", &["-f", "-"], &table))
    }
}

/// The address of a host.
pub fn address(host: usize) -> String {
    format!("{HOSTS}.{host}")
}

/// The namespaces of one test. Hosts are counted from 1.
pub struct Sandbox {
    /// Has the bridge.
    _hub: Namespace,
    client: Namespace,
    relays: Namespace,
    hosts: Vec<Namespace>,
}

impl Sandbox {
    /// Makes room for this many hosts.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn create(hosts: usize) -> Result<Sandbox, String> {
        let hub = Namespace::create()?;
        hub.configure("link add name bridge type bridge\nlink set dev bridge up\n")?;
        let attach = |port: usize, address: &str| {
            let leaf = Namespace::create()?;
            let path = leaf.path();
            hub.configure(&format!(
                "link add name port{port} type veth peer name eth0 netns {path}\n\
                 link set dev port{port} master bridge up\n"
            ))?;
            leaf.configure(&format!(
                "link set dev lo up\naddress add {address}/16 dev eth0\nlink set dev eth0 up\n"
            ))?;
            leaf.filter("numgen random mod 100 < 0 drop")?;
            Ok::<Namespace, String>(leaf)
        };
        let client = attach(0, CLIENT)?;
        let relays = attach(hosts + 1, RELAYS)?;
        let hosts: Result<Vec<_>, _> =
            (1..=hosts).map(|host| attach(host, &address(host))).collect();
        let hosts = hosts?;
        Ok(Sandbox { _hub: hub, client, relays, hosts })
    }

    /// Where the clients are.
    pub fn client(&self) -> &Namespace {
        &self.client
    }

    /// Where relays are.
    pub fn relays(&self) -> &Namespace {
        &self.relays
    }

    /// The address that relays have there.
    pub fn relays_address(&self) -> &'static str {
        RELAYS
    }

    /// Where a host is.
    pub fn host(&self, host: usize) -> &Namespace {
        &self.hosts[host - 1]
    }

    /// Has each host drop what `rules` says from now on, instead of what it dropped before.
    fn filter(&self, rules: impl Fn(usize) -> String) {
        for (index, namespace) in self.hosts.iter().enumerate() {
            namespace.filter(&rules(index + 1)).expect("the rules are right");
        }
    }

    /// Nothing comes through from one host to another; the other way is open.
    pub fn cut_one_way(&self, from: usize, to: usize) {
        self.filter(|host| match host == to {
            true => format!("ip saddr {} drop", address(from)),
            false => String::new(),
        });
    }

    /// Nothing comes through between these hosts and all others, either way.
    pub fn part(&self, side: &[usize]) {
        self.filter(|host| {
            let mut rules = String::new();
            let is_beyond = |peer: &usize| side.contains(peer) != side.contains(&host);
            for peer in (1..=self.hosts.len()).filter(is_beyond) {
                writeln!(rules, "ip saddr {} drop", address(peer)).expect("a string takes it");
            }
            rules
        });
    }

    /// Of the packets between hosts, this many in a hundred are lost.
    pub fn lose(&self, percent: u32) {
        let rule = format!("ip saddr {HOSTS}.0/24 numgen random mod 100 < {percent} drop");
        self.filter(|_| rule.clone());
    }

    /// Of the packets between clients and hosts, this many in a hundred are lost, either way.
    pub fn lose_of_clients(&self, percent: u32) {
        let rule = |from: &str| format!("ip saddr {from} numgen random mod 100 < {percent} drop");
        self.filter(|_| rule(CLIENT));
        self.client.filter(&rule(&format!("{HOSTS}.0/24"))).expect("the rules are right");
    }

    /// Everything comes through again.
    pub fn heal(&self) {
        self.filter(|_| String::new());
        self.client.filter("").expect("the rules are right");
    }
}
