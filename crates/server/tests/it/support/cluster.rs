//! Hosts as processes of their own, three unless a test wants another number, for tests that harm
//! them.

use crate::support::run::{command, limited, quorate};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for what must happen: generous, for machines that are so busy that a host
/// gets a fiftieth of a core.
pub const SOON: Duration = Duration::from_secs(300);
/// How often a condition is looked at again.
const AGAIN: Duration = Duration::from_millis(10);

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(AGAIN);
    }
}

/// The body that an HTTP door answers a request with.
pub fn get(http: &str, path: &str) -> String {
    let answer = answer(http, path);
    let (_, body) = answer.split_once("\r\n\r\n").expect("an answer has a body");
    body.to_owned()
}

/// What an HTTP door answers to a request, head and body.
pub fn answer(http: &str, path: &str) -> String {
    let address = http.parse().expect("an address");
    ask(address, path, SOON).unwrap_or_else(|error| panic!("{path} at {http}: {error}"))
}

/// The same, unless it takes longer than `patience`.
fn ask(http: SocketAddr, path: &str, patience: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&http, patience)?;
    stream.set_read_timeout(Some(patience))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// What the host of a RESP door says of itself, for whoever fails there: its metrics that are not
/// zero, or why it says nothing.
pub fn state_of(resp: &str) -> String {
    let mut http: SocketAddr = resp.parse().expect("an address");
    // As `Cluster::resp` and `Cluster::http` have it.
    http.set_port(http.port() - 1);
    ask(http, "/metrics", Duration::from_secs(10)).map_or_else(
        |error| format!("its host says nothing of itself: {error}"),
        |metrics| {
            let is_telling = |line: &&str| {
                let is_number = !line.starts_with('#') && !line.contains("_bucket{");
                let is_zero = line.ends_with(" 0") || line.ends_with(" 0.0");
                is_number && line.starts_with("quorate_") && !is_zero
            };
            let lines: Vec<&str> = metrics.lines().filter(is_telling).collect();
            format!("its host says of itself:\n{}", lines.join("\n"))
        },
    )
}

/// A cluster; host `i` is killed and its data removed when a test ends.
pub struct Cluster {
    place: tempfile::TempDir,
    base: u16,
    data: Vec<PathBuf>,
    running: Vec<Option<Child>>,
    environment: Vec<Vec<(String, String)>>,
    settings: Vec<String>,
    files_max: Option<u64>,
}

impl Cluster {
    /// Makes a cluster on ports of its own, and starts no host of it.
    pub fn create(durability: &str) -> Cluster {
        Cluster::create_with(durability, &[])
    }

    /// The same, with more arguments for `init`.
    pub fn create_with(durability: &str, more: &[&str]) -> Cluster {
        Cluster::create_of(3, durability, more)
    }

    /// The same, of so many hosts.
    pub fn create_of(count: u16, durability: &str, more: &[&str]) -> Cluster {
        let base = crate::support::ports::base();
        let place = tempfile::tempdir().expect("a temporary directory");
        let hosts: Vec<String> =
            (1..=count).map(|host| format!("127.0.0.1:{}", base + 10 * host + 1)).collect();
        let output = place.path().join("data").display().to_string();
        let mut args = vec!["init", "--output", &output, "--durability", durability];
        for host in &hosts {
            args.extend(["--host", host]);
        }
        args.extend(more);
        let said = quorate(&args);
        assert_eq!(said.code, 0, "{said:?}");
        let path = |host| place.path().join(format!("data/host-{host}"));
        let data = (1..=count).map(path).collect();
        // Segments of a few megabytes are used again within a test.
        let log = ["store.log_segment=4MiB", "store.log_max=16MiB"];
        let settings = ["limits.request_timeout=2s"].into_iter().chain(log);
        let settings = settings.map(String::from).collect();
        let environment = vec![Vec::new(); usize::from(count)];
        let running = (0..count).map(|_| None).collect();
        Cluster { place, base, data, running, environment, settings, files_max: None }
    }

    /// Makes a cluster and starts all of it.
    pub fn start(durability: &str) -> Cluster {
        let mut cluster = Cluster::create(durability);
        cluster.start_all();
        cluster
    }

    /// A place for other files of the test.
    pub fn place(&self) -> &Path {
        self.place.path()
    }

    /// The data directory of a host.
    pub fn data(&self, host: usize) -> &Path {
        &self.data[host - 1]
    }

    /// Has a host find its data elsewhere from now on.
    pub fn move_data(&mut self, host: usize, path: PathBuf) {
        self.data[host - 1] = path;
    }

    /// Adds a setting for hosts that start from now on.
    pub fn set(&mut self, setting: &str) {
        self.settings.push(setting.to_owned());
    }

    /// Sets the environment of hosts that start from now on.
    pub fn set_environment(&mut self, environment: Vec<(String, String)>) {
        self.environment.fill(environment);
    }

    /// The same of one host alone.
    pub fn set_environment_of(&mut self, host: usize, environment: Vec<(String, String)>) {
        self.environment[host - 1] = environment;
    }

    /// All hosts.
    pub fn hosts(&self) -> Vec<usize> {
        (1..=self.data.len()).collect()
    }

    /// Allows so many open files to hosts that start from now on.
    pub fn set_files_max(&mut self, count: u64) {
        self.files_max = Some(count);
    }

    fn door(&self, host: usize, door: u16) -> String {
        let host = u16::try_from(host).expect("hosts are few");
        format!("127.0.0.1:{}", self.base + 10 * host + door)
    }

    pub fn cluster(&self, host: usize) -> String {
        self.door(host, 1)
    }

    pub fn http(&self, host: usize) -> String {
        self.door(host, 2)
    }

    pub fn resp(&self, host: usize) -> String {
        self.door(host, 3)
    }

    pub fn grpc(&self, host: usize) -> String {
        self.door(host, 4)
    }

    pub fn zookeeper(&self, host: usize) -> String {
        self.door(host, 5)
    }

    /// The RESP doors of all hosts.
    pub fn doors(&self) -> Vec<String> {
        self.hosts().into_iter().map(|host| self.resp(host)).collect()
    }

    fn log(&self, host: usize) -> PathBuf {
        self.place().join(format!("host-{host}.log"))
    }

    /// What a host has written to standard error since it was last started.
    pub fn said(&self, host: usize) -> String {
        fs::read_to_string(self.log(host)).expect("the log is text")
    }

    /// Starts a host and does not wait until it serves.
    pub fn launch(&mut self, host: usize) {
        self.launch_with(host, &[]);
    }

    /// The same, with more arguments.
    pub fn launch_with(&mut self, host: usize, more: &[&str]) {
        assert!(self.running[host - 1].is_none(), "a host is started when it does not run");
        let (data, me) = (self.data(host).display().to_string(), std::process::id().to_string());
        let (resp, http) = (self.resp(host), self.http(host));
        let mut args = vec!["server", "--data", &data, "--format", "json", "--exit-with", &me];
        args.extend(["--resp", &resp, "--http", &http]);
        for setting in &self.settings {
            args.extend(["--set", setting]);
        }
        args.extend(more);
        let mut command = match self.files_max {
            Some(count) => limited(count, &args),
            None => command(&args),
        };
        command.envs(self.environment[host - 1].iter().map(|(name, value)| (name, value)));
        let log = File::create(self.log(host)).expect("a log file");
        let process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn();
        self.running[host - 1] = Some(process.expect("the binary starts"));
    }

    /// Waits for a launched host's line that it serves.
    pub fn await_ready(&mut self, host: usize) {
        let process = self.running[host - 1].as_mut().expect("the host was launched");
        let mut line = String::new();
        let output = process.stdout.take().expect("a pipe was asked for");
        BufReader::new(output).read_line(&mut line).expect("the output is text");
        let ready: Value = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("host {host} is not ready: {}", self.said(host)));
        assert_eq!(ready["resp"], self.resp(host).as_str(), "{ready}");
    }

    /// Starts a host that others wait for, and waits until it serves.
    pub fn restart(&mut self, host: usize) {
        self.launch(host);
        self.await_ready(host);
    }

    /// Starts all hosts and waits until each serves and is connected to the others.
    pub fn start_all(&mut self) {
        let hosts = self.hosts();
        hosts.iter().for_each(|&host| self.launch(host));
        hosts.iter().for_each(|&host| self.await_ready(host));
        for &host in &hosts {
            until("the hosts are connected", || {
                let status = self.status(host);
                (0..hosts.len() - 1).all(|peer| status["peers"][peer]["up"] == true)
            });
        }
    }

    fn process(&self, host: usize) -> &Child {
        self.running[host - 1].as_ref().expect("the host runs")
    }

    fn pid(&self, host: usize) -> Pid {
        let pid = i32::try_from(self.process(host).id()).ok().and_then(Pid::from_raw);
        pid.expect("a process id")
    }

    pub fn signal(&self, host: usize, signal: Signal) {
        kill_process(self.pid(host), signal).expect("the host runs");
    }

    /// Kills hosts at once, without any chance to finish something.
    pub fn kill(&mut self, hosts: &[usize]) {
        for &host in hosts {
            self.signal(host, Signal::KILL);
        }
        for &host in hosts {
            self.ended(host);
        }
    }

    /// Waits until a host has ended by itself; its exit code, none if it was killed.
    pub fn ended(&mut self, host: usize) -> Option<i32> {
        let mut process = self.running[host - 1].take().expect("the host runs");
        let mut code = None;
        until("the host ends", || {
            code = process.try_wait().expect("a child can be waited for");
            code.is_some()
        });
        code.expect("it has ended").code()
    }

    /// Whether a host runs.
    pub fn is_running(&mut self, host: usize) -> bool {
        let process = self.running[host - 1].as_mut();
        process.is_some_and(|process| process.try_wait().expect("a child").is_none())
    }

    /// The memory of a host that is in use, in MiB.
    pub fn resident_mib(&self, host: usize) -> u64 {
        let path = format!("/proc/{}/status", self.process(host).id());
        let status = fs::read_to_string(path).expect("the host runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it has memory");
        let kib = line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
        kib.expect("a number") / 1024
    }

    /// Lets a host that runs open so many files from now on; how many it could before.
    pub fn limit_files(&self, host: usize, count: Option<u64>) -> Option<u64> {
        let pid = self.pid(host);
        let maximum = getrlimit(Resource::Nofile).maximum;
        let new = Rlimit { current: count, maximum };
        prlimit(Some(pid), Resource::Nofile, new).expect("the host runs").current
    }

    /// How many seconds of processor time a host has taken: how busy the machine is does not
    /// matter.
    pub fn worked_s(&self, host: usize) -> u64 {
        /// What Linux counts it in, whatever its own ticks are.
        const TICKS_PER_S: u64 = 100;
        let path = format!("/proc/{}/stat", self.process(host).id());
        let stat = fs::read_to_string(path).expect("the host runs");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
        let fields = fields.split(' ').skip(11).take(2);
        let ticks = fields.map(|field| field.parse::<u64>().expect("a number"));
        ticks.sum::<u64>() / TICKS_PER_S
    }

    pub fn status(&self, host: usize) -> Value {
        let body = get(&self.http(host), "/status");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error} in {body}"))
    }

    /// The value of a metric, named with its labels.
    pub fn metric(&self, host: usize, name: &str) -> u64 {
        let body = get(&self.http(host), "/metrics");
        let line = body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{name} in {body}"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.running.iter_mut().flatten() {
            // Killing what has ended already fails, and does no harm.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
