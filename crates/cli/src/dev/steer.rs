//! Carries out the orders of `dev ctl` on a running cluster.

use super::ctl::{Order, SOCKET, Said};
use super::cuts::Cuts;
use super::hosts::{Event, Hosts};
use crate::provision::Doors;
use crate::verbs::hosts::server::ReadyLine;
use quorate_gateway::web::http;
use quorate_host::proof::Secrets;
use quorate_host::proof::secret;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// How long a host may take until it serves.
const READY_MAX: Duration = Duration::from_secs(60);
/// How long a host may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The longest order taken, in bytes.
const ORDER_BYTES_MAX: u64 = 4096;

/// The socket, and what was done to the cluster so far.
pub struct Steering {
    /// None if the socket cannot be had: the cluster runs all the same.
    listener: Option<UnixListener>,
    cuts: Cuts,
    frozen: BTreeSet<u32>,
}

impl Steering {
    /// Opens the socket of a cluster.
    #[must_use]
    pub fn open(data: &Path) -> Steering {
        let path = data.join(SOCKET);
        // One of an earlier run is in the way; that it has ended was seen by the ports.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)
            .inspect_err(|error| {
                eprintln!("`dev ctl` will not work: {}: {error}", path.display());
            })
            .ok();
        Steering { listener, cuts: Cuts::default(), frozen: BTreeSet::new() }
    }

    /// Waits for somebody with an order.
    pub async fn accept(&self) -> UnixStream {
        let Some(listener) = &self.listener else { return std::future::pending().await };
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return stream,
                Err(error) => {
                    eprintln!("`dev ctl` was not heard: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Reads an order, carries it out and says what became of it.
    pub async fn serve(&mut self, stream: UnixStream, hosts: &mut Hosts) {
        let (reader, mut writer) = stream.into_split();
        let mut line = String::new();
        let mut reader = BufReader::new(tokio::io::AsyncReadExt::take(reader, ORDER_BYTES_MAX));
        let read = tokio::time::timeout(ANSWER_MAX, reader.read_line(&mut line)).await;
        if !matches!(read, Ok(Ok(_))) {
            return;
        }
        let said = match serde_json::from_str::<Order>(&line) {
            Ok(order) => match self.carry_out(&order, hosts).await {
                Ok(text) => Said { is_done: true, text },
                Err(text) => Said { is_done: false, text },
            },
            Err(error) => Said { is_done: false, text: format!("that is no order: {error}") },
        };
        let answer = serde_json::to_string(&said).expect("an answer is a word and a text");
        // Whoever asked may have gone.
        let _ = writer.write_all(format!("{answer}\n").as_bytes()).await;
    }

    async fn carry_out(&mut self, order: &Order, hosts: &mut Hosts) -> Result<String, String> {
        match order {
            Order::Add => self.add(hosts).await,
            Order::Start { host } => self.start(*host, hosts).await,
            Order::Kill { host } => {
                hosts.signal(*host, Signal::KILL)?;
                self.frozen.remove(host);
                while hosts.is_running(*host) {
                    hosts.next().await;
                }
                Ok(format!("host {host} is killed"))
            }
            Order::Freeze { host } => {
                hosts.signal(*host, Signal::STOP)?;
                self.frozen.insert(*host);
                Ok(format!("host {host} is frozen"))
            }
            Order::Thaw { host } => {
                hosts.signal(*host, Signal::CONT)?;
                self.frozen.remove(host);
                self.apply(&[*host], hosts)?;
                Ok(format!("host {host} goes on"))
            }
            Order::Drain { host } => self.drain(*host, hosts),
            _ => self.change_cuts(order, hosts),
        }
    }

    fn change_cuts(&mut self, order: &Order, hosts: &Hosts) -> Result<String, String> {
        let text = match order {
            Order::Partition { one, other } => {
                check_known(hosts, one.0.iter().chain(&other.0))?;
                self.cuts.part(&one.0, &other.0);
                format!("hosts {:?} and {:?} do not hear each other", one.0, other.0)
            }
            Order::Oneway { from, to } => {
                check_known(hosts, [from, to])?;
                self.cuts.cut(*from, *to);
                format!("host {to} does not hear host {from}")
            }
            Order::Delay { one, other, millis } => {
                check_known(hosts, [one, other])?;
                self.cuts.delay(*one, *other, *millis);
                format!("between hosts {one} and {other} a frame takes {millis} ms longer")
            }
            _ => {
                self.cuts.heal();
                String::from("all hosts hear each other")
            }
        };
        let all: Vec<u32> = hosts.numbers();
        self.apply(&all, hosts)?;
        Ok(text)
    }

    /// Tells hosts what their frames meet from now on. One that is frozen, or does not run, is told
    /// when it goes on.
    fn apply(&self, numbers: &[u32], hosts: &Hosts) -> Result<(), String> {
        for number in numbers.iter().filter(|number| !self.frozen.contains(number)) {
            let Some(line) = hosts.line(*number) else { continue };
            let faults: Vec<String> = self
                .cuts
                .of(*number)
                .into_iter()
                .filter_map(|(to, what)| Some(format!("{}={what}", hosts.node(to)?)))
                .collect();
            post(line, &format!("/dev/faults?{}", faults.join("&")))?;
        }
        Ok(())
    }

    /// A host that runs and is not frozen, other than this one.
    fn helper<'a>(&self, hosts: &'a Hosts, except: u32) -> Result<&'a ReadyLine, String> {
        let numbers = hosts.numbers();
        let fit = |number: &&u32| **number != except && !self.frozen.contains(number);
        let mut lines = numbers.iter().filter(fit).filter_map(|number| hosts.line(*number));
        lines.next().ok_or_else(|| String::from("no other host runs that could be asked"))
    }

    async fn add(&mut self, hosts: &mut Hosts) -> Result<String, String> {
        let number = hosts.numbers().last().copied().unwrap_or(0) + 1;
        let seed = self.helper(hosts, number)?;
        let (join, base) = (seed.http.to_string(), seed.cluster.port());
        let base = u32::from(base).checked_sub(10 * seed.host + 1);
        let base = base.and_then(|base| u16::try_from(base).ok());
        let base =
            base.ok_or("the ports of this cluster follow no order; start the host by hand")?;
        let doors = Doors::on_this_machine(base, number).map_err(|error| error.to_string())?;
        let identity = quorate_store::identity_of(&seed.data).map_err(|error| error.to_string())?;
        let secrets = Secrets::of(&seed.data, &identity).map_err(|error| error.to_string())?;
        let mut more = vec![("--join", join), ("--number", number.to_string())];
        more.extend(doors.all().iter().map(|(door, at)| ("--set", format!("{door}.bind={at}"))));
        hosts.launch(number, &more, Some(&secret::text(&secrets.accepted()[0])))?;
        let line = await_ready(number, hosts).await?;
        Ok(format!("host {number} has joined: resp {}, http {}", line.resp(), line.http))
    }

    async fn start(&mut self, number: u32, hosts: &mut Hosts) -> Result<String, String> {
        check_known(hosts, [&number])?;
        if hosts.is_running(number) {
            return Err(format!("host {number} runs"));
        }
        hosts.launch(number, &[], None)?;
        // What the others drop stays dropped meanwhile; its own frames pass until it is told.
        let line = await_ready(number, hosts).await?;
        self.apply(&[number], hosts)?;
        Ok(format!("host {number} serves again: resp {}", line.resp()))
    }

    fn drain(&self, number: u32, hosts: &Hosts) -> Result<String, String> {
        let node = hosts.node(number).ok_or_else(|| unknown(number, hosts))?;
        let helper = self.helper(hosts, number)?;
        post(helper, &format!("/control/drain?node={node}"))?;
        Ok(format!("host {number} hands over what it holds; `quorate status` shows how far it is"))
    }
}

fn check_known<'a>(
    hosts: &Hosts,
    numbers: impl IntoIterator<Item = &'a u32>,
) -> Result<(), String> {
    let known = hosts.numbers();
    match numbers.into_iter().find(|number| !known.contains(number)) {
        Some(number) => Err(unknown(*number, hosts)),
        None => Ok(()),
    }
}

fn unknown(number: u32, hosts: &Hosts) -> String {
    format!("there is no host {number}; there are {:?}", hosts.numbers())
}

fn post(line: &ReadyLine, path: &str) -> Result<(), String> {
    let address = line.http.to_string();
    let answer = http::post(&address, path, ANSWER_MAX);
    let answer = answer.map_err(|error| format!("host {} at {address}: {error}", line.host))?;
    match answer.status {
        200 => Ok(()),
        _ => Err(format!("host {}: {}", line.host, http::error_of(&answer))),
    }
}

/// Waits until a host that was launched serves.
async fn await_ready(number: u32, hosts: &mut Hosts) -> Result<ReadyLine, String> {
    let wait = async {
        loop {
            match hosts.next().await {
                Event::Ready(line) if line.host == number => return Ok(line),
                Event::Ended { number: ended, how, .. } if ended == number => {
                    return Err(format!("{how}; {}", hosts.last_words(number)));
                }
                _ => {}
            }
        }
    };
    match tokio::time::timeout(READY_MAX, wait).await {
        Ok(Ok(line)) => Ok(line),
        Ok(Err(why)) => Err(format!("host {number} ended before it was ready: {why}")),
        Err(_) => Err(format!("host {number} was not ready within {} s", READY_MAX.as_secs())),
    }
}
