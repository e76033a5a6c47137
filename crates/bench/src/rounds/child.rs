//! Servers that a comparison starts: they end with it, whatever way it ends.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use tempfile::TempDir;

use crate::config::{Stop, Wire};
use crate::error::BenchError;

/// How long a server may take to become ready.
const START_MAX: Duration = Duration::from_secs(60);
/// How long a server may take to stop after it was asked to.
const STOP_MAX: Duration = Duration::from_secs(10);
/// How often a state that nothing announces is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How many of a server's last words an error repeats.
const LAST_LINES: usize = 5;

/// A server that was started for a measurement; dropping it stops it.
#[derive(Debug)]
pub struct Server {
    /// Where its clients connect.
    pub endpoints: Vec<SocketAddr>,
    /// The processes that serve.
    pub pids: Vec<u32>,
    program: String,
    child: Child,
    /// Holds its output, and its data unless it was given another place.
    directory: TempDir,
}

/// The line that a cluster prints when it is ready, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Ready {
    hosts: Vec<ReadyHost>,
}

#[derive(Debug, Deserialize)]
struct ReadyHost {
    pid: u32,
    resp: SocketAddr,
    zookeeper: Option<SocketAddr>,
}

impl ReadyHost {
    fn door(&self, wire: Wire) -> Option<SocketAddr> {
        match wire {
            Wire::Resp => Some(self.resp),
            Wire::ZooKeeper => self.zookeeper,
        }
    }
}

impl Server {
    /// Starts a redis-server without persistence on this port of 127.0.0.1.
    pub fn redis(program: &str, port: u16, stop: &Stop) -> Result<Server, BenchError> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpStream::connect_timeout(&address, LOOK_EVERY).is_ok() {
            let reason = format!("something already listens at {address}");
            return Err(BenchError::Child { program: program.to_owned(), reason });
        }
        let port = port.to_string();
        let arguments =
            ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
        let mut server = Server::start(program, &arguments, Stdio::null())?;
        server.wait(stop, || TcpStream::connect_timeout(&address, LOOK_EVERY).is_ok())?;
        server.endpoints = vec![address];
        server.pids = vec![server.child.id()];
        Ok(server)
    }

    /// Starts a cluster: a program whose first line on standard output is the JSON of `dev`.
    pub fn cluster(
        program: &str,
        arguments: &[&str],
        wire: Wire,
        stop: &Stop,
    ) -> Result<Server, BenchError> {
        let mut server = Server::start(program, arguments, Stdio::piped())?;
        let output = server.child.stdout.take().expect("its standard output was asked for");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            // Later lines are read as well, so that the program never waits for a full pipe.
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let begin = Instant::now();
        let line = loop {
            match receiver.recv_timeout(LOOK_EVERY) {
                Ok(line) => break line,
                Err(_) => server.check_starting(begin, stop)?,
            }
        };
        let ready: Ready = serde_json::from_str(&line).map_err(|error| {
            server.failure(&format!("its first line is not understood: {error}"))
        })?;
        let doors = ready.hosts.iter().map(|host| host.door(wire)).collect::<Option<_>>();
        server.endpoints = doors.ok_or_else(|| server.failure("it has no such door"))?;
        server.pids = ready.hosts.iter().map(|host| host.pid).collect();
        Ok(server)
    }

    /// Starts one server of an ensemble, which is ready once its port tells so.
    pub fn member(
        program: &str,
        arguments: &[&str],
        address: SocketAddr,
    ) -> Result<Server, BenchError> {
        let mut server = Server::start(program, arguments, Stdio::null())?;
        server.endpoints = vec![address];
        server.pids = vec![server.child.id()];
        Ok(server)
    }

    /// Waits until something holds.
    pub fn wait(&mut self, stop: &Stop, mut holds: impl FnMut() -> bool) -> Result<(), BenchError> {
        let begin = Instant::now();
        while !holds() {
            self.check_starting(begin, stop)?;
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Starts a program in a process group of its own, its words in a file.
    fn start(program: &str, arguments: &[&str], output: Stdio) -> Result<Server, BenchError> {
        let failure = |error: std::io::Error| BenchError::Child {
            program: program.to_owned(),
            reason: error.to_string(),
        };
        let directory = tempfile::Builder::new().prefix("quorate-bench-").tempdir();
        let directory = directory.map_err(failure)?;
        let words = File::create(directory.path().join("stderr")).map_err(failure)?;
        let mut command = Command::new(program);
        for argument in arguments {
            // The one thing a caller cannot know is where the server's own directory is.
            command.arg(argument.replace("{directory}", &directory.path().to_string_lossy()));
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(words)
            .process_group(0)
            .spawn()
            .map_err(failure)?;
        let program = program.to_owned();
        Ok(Server { endpoints: Vec::new(), pids: Vec::new(), program, child, directory })
    }

    /// Fails if the server has ended, takes too long, or is no longer wanted.
    fn check_starting(&mut self, begin: Instant, stop: &Stop) -> Result<(), BenchError> {
        if stop.is_raised() {
            return Err(BenchError::Interrupted);
        }
        let status = self.child.try_wait().map_err(BenchError::system("look at a child"))?;
        if let Some(status) = status {
            return Err(self.failure(&format!("it ended with {status}")));
        }
        if begin.elapsed() > START_MAX {
            return Err(self.failure(&format!("not ready after {} s", START_MAX.as_secs())));
        }
        Ok(())
    }

    /// An error with the server's last words.
    fn failure(&self, reason: &str) -> BenchError {
        let words = std::fs::read_to_string(self.words()).unwrap_or_default();
        let lines: Vec<&str> = words.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        let said = if last.is_empty() { String::new() } else { format!(": {}", last.join("; ")) };
        BenchError::Child { program: self.program.clone(), reason: format!("{reason}{said}") }
    }

    fn words(&self) -> PathBuf {
        self.directory.path().join("stderr")
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself, which is all that is wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::INT);
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begin.elapsed() < STOP_MAX {
            thread::sleep(LOOK_EVERY);
        }
        // Whatever is left of its group goes with it.
        self.signal(Signal::KILL);
        // It was killed, so this cannot wait long, and nobody is left to tell.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a process runs; a zombie does not.
    fn is_running(pid: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
    }

    const READY: &str =
        r#"{"cluster":"c","hosts":[{"host":1,"pid":PID,"data":"d","resp":"127.0.0.1:1"}]}"#;

    fn script(body: &str) -> Result<Server, BenchError> {
        let text = format!("echo '{}'; {body}", READY.replace("PID", "'$$'"));
        Server::cluster("sh", &["-c", &text], Wire::Resp, &Stop::default())
    }

    #[test]
    fn a_cluster_says_where_it_is_and_ends_when_dropped() {
        let server = script("exec sleep 1000").unwrap();
        let pid = server.pids[0];
        assert_eq!(server.endpoints, ["127.0.0.1:1".parse().unwrap()]);
        assert!(is_running(pid));
        drop(server);
        assert!(!is_running(pid));
    }

    #[test]
    fn a_panic_stops_the_server_and_what_it_started() {
        let pids = std::sync::Mutex::new(Vec::new());
        let outcome = std::panic::catch_unwind(|| {
            let text = READY.replace("PID", "'$!'");
            let text = format!("sleep 1000 & echo '{text}'; wait");
            let server =
                Server::cluster("sh", &["-c", &text], Wire::Resp, &Stop::default()).unwrap();
            // A shell's background process ignores the interrupt, so only the kill reaches it.
            pids.lock().unwrap().extend([server.child.id(), server.pids[0]]);
            assert!(server.pids.iter().all(|&pid| is_running(pid)));
            panic!("on purpose");
        });
        assert!(outcome.is_err());
        let pids = pids.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        assert_eq!(pids.len(), 2, "the server had started");
        // The orphan's new parent reaps it in its own time, and a kill is not instantaneous.
        let begin = Instant::now();
        while pids.iter().any(|&pid| is_running(pid)) {
            assert!(begin.elapsed() < STOP_MAX, "{pids:?} still run");
            thread::yield_now();
        }
    }

    #[test]
    fn a_server_that_fails_is_quoted() {
        let text = "echo one >&2; echo the disk is full >&2; exit 3";
        let error = Server::cluster("sh", &["-c", text], Wire::Resp, &Stop::default()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("the disk is full") && text.contains('3'), "{text}");
        let error =
            Server::cluster("/no/such/program", &[], Wire::Resp, &Stop::default()).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
        let text = "echo hello; sleep 9";
        let error = Server::cluster("sh", &["-c", text], Wire::Resp, &Stop::default());
        assert!(error.unwrap_err().to_string().contains("first line"));
    }

    #[test]
    fn a_user_who_stops_is_heard_while_a_server_starts() {
        let stop = Stop::default();
        stop.0.store(true, std::sync::atomic::Ordering::Relaxed);
        let outcome = Server::cluster("sleep", &["1000"], Wire::Resp, &stop);
        assert!(matches!(outcome, Err(BenchError::Interrupted)));
    }
}
