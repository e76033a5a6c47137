//! `server --join`: the data directory of a host that joins a running cluster.

use crate::config::Config;
use crate::config::values::{check_address, check_target, is_loopback};
use crate::exit::{Code, Failure};
use crate::provision::{Doors, Newcomer, doors_of, write_addresses};
use quorate_gateway::admin::Invitation;
use quorate_gateway::web::http;
use quorate_host::proof::{Purpose, ask as prove, envelope, secret};
use quorate_kernel::limits::HOST_TOKENS_MAX;
use quorate_kernel::wire::VERSION;
use quorate_store::{DirectoryError, Identity, Secret};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a seed that does not answer is asked again.
const ASK_FOR: Duration = Duration::from_secs(10);
/// How long one try may take.
const TRY_FOR: Duration = Duration::from_secs(5);
/// How long after a failed try the next one comes.
const AGAIN: Duration = Duration::from_millis(200);

/// The arguments of a join.
#[derive(Debug, clap::Args)]
pub struct JoinArgs {
    /// Join the cluster of the host whose HTTP door is there, if the data directory is empty. One
    /// that has joined already is started as it is
    #[arg(long, value_name = "HOST:PORT")]
    join: Option<String>,
    /// The file with the cluster's secret, as `init` wrote it beside the directories; only to join
    #[arg(long, value_name = "FILE", requires = "join")]
    secret_file: Option<PathBuf>,
    /// The cluster's secret itself, instead of the file
    #[arg(long, env = "QUORATE_CLUSTER_SECRET", hide = true, hide_env_values = true)]
    secret: Option<String>,
    /// Where the other hosts find this one, no loopback address if they are on other machines; only
    /// to join [default: where the cluster door listens]
    #[arg(long, value_name = "HOST:PORT", requires = "join")]
    address: Option<String>,
    /// How many places on the ring this host takes; only to join
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    tokens: usize,
    /// The failure zone of this host; only to join
    #[arg(long, value_name = "NAME", default_value = "")]
    zone: String,
    /// The number that people call this host by
    #[arg(long, hide = true, requires = "join")]
    number: Option<u32>,
}

/// Makes the data directory if a join was asked for and there is none yet.
///
/// # Errors
/// The directory or the seed does not fit; nothing was written, unless the disk failed.
pub fn prepare(args: &JoinArgs, config: &Config) -> Result<(), Failure> {
    let Some(seed) = &args.join else { return Ok(()) };
    check_target(seed).map_err(|error| usage(format!("--join: {error}")))?;
    let data = &config.node.data;
    match quorate_store::identity_of(data) {
        Ok(identity) => check_same_cluster(seed, data, &identity),
        Err(DirectoryError::NotInitialised { .. }) => join(args, seed, config),
        Err(error) => Err(error.into()),
    }
}

fn usage(text: String) -> Failure {
    Failure::new(Code::Usage, text)
}

/// A directory that has joined needs no seed. If the seed answers, it must be of its cluster.
fn check_same_cluster(seed: &str, data: &Path, identity: &Identity) -> Result<(), Failure> {
    let Ok(answer) = http::get(seed, "/status", Duration::from_secs(1)) else {
        tracing::warn!(event = "seed_away", %seed, "the directory has joined, and starts without");
        return Ok(());
    };
    let status: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
    match status["cluster"].as_str() {
        Some(cluster) if cluster != identity.cluster.to_string() => Err(Failure::failed(format!(
            "{} belongs to cluster {}, the seed {seed} to cluster {cluster}; nothing was changed: \
             give the seed of its own cluster, or another --data",
            data.display(),
            identity.cluster
        ))),
        _ => Ok(()),
    }
}

fn join(args: &JoinArgs, seed: &str, config: &Config) -> Result<(), Failure> {
    let data = &config.node.data;
    quorate_store::check_empty(data)?;
    if !(1..=HOST_TOKENS_MAX).contains(&args.tokens) {
        return Err(usage(format!("--tokens is 1 to {HOST_TOKENS_MAX}")));
    }
    let doors = doors(args, config)?;
    let secrets = known_secrets(args)?;
    let (secret, invitation) = invited(seed, &secrets)?;
    let newcomer = Newcomer {
        number: args.number,
        address: doors.cluster.clone(),
        zone: args.zone.clone(),
        tokens: args.tokens,
    };
    let taken = invitation.hosts.iter().find(|host| host.address == newcomer.address);
    if let Some(host) = taken {
        return Err(Failure::failed(format!(
            "{} is the address of node {} of this cluster; give this host one of its own, or \
             remove that one if it is gone for good: quorate remove {}",
            newcomer.address, host.node, host.node
        )));
    }
    // What was said is meant: the way to others may lead through this machine.
    if args.address.is_none() && config.cluster.advertise.0.is_empty() {
        let others = invitation.hosts.iter().map(|host| host.address.as_str());
        check_reachable(&newcomer.address, others)?;
    }
    let identity = newcomer.accept(&invitation, secret)?;
    // Before the identity: without its addresses the host would start at the usual ones.
    write_addresses(data, &doors, None)?;
    quorate_store::create(data, &identity)?;
    // The identity has the secret by which it was invited.
    if secrets.len() > 1 {
        secret::change(data, &mut secret::lock(data)?, &secrets)?;
    }
    tracing::info!(event = "joining", cluster = %identity.cluster, node = %identity.node, %seed);
    Ok(())
}

/// Where the new host's doors are, and where the others find it.
fn doors(args: &JoinArgs, config: &Config) -> Result<Doors, Failure> {
    let bind = config.cluster.bind;
    let address = match args.address.as_ref().or(config.cluster.advertise.0.first()) {
        Some(address) => {
            check_address(address).map_err(|error| usage(format!("--address: {error}")))?;
            address.clone()
        }
        None if bind.ip().is_unspecified() || bind.port() == 0 => {
            return Err(usage(format!(
                "the cluster door listens on {bind}, where no other host can look for it; say \
                 where they find it with --address HOST:PORT"
            )));
        }
        None => bind.to_string(),
    };
    Ok(doors_of(config, &address))
}

/// Refuses an address that hosts on other machines would look for on their own: it stays in the
/// identity for good.
fn check_reachable<'h>(
    address: &str,
    mut others: impl Iterator<Item = &'h str>,
) -> Result<(), Failure> {
    match others.find(|other| !is_loopback(other)) {
        Some(other) if is_loopback(address) => Err(usage(format!(
            "{address} leads to no other machine, and the cluster has a host at {other}; say where \
             the cluster door listens with --cluster ADDRESS, or where the others find this host \
             with --address HOST:PORT; nothing was written"
        ))),
        _ => Ok(()),
    }
}

fn known_secrets(args: &JoinArgs) -> Result<Vec<Secret>, Failure> {
    match (&args.secret_file, &args.secret) {
        (Some(file), _) => Ok(secret::read(file)?),
        (None, Some(text)) => secret::parse(text).map(|secret| vec![secret]).ok_or_else(|| {
            usage(String::from("QUORATE_CLUSTER_SECRET is not 64 hexadecimal digits"))
        }),
        (None, None) => Err(usage(format!(
            "a host that joins must know the cluster's secret: give --secret-file with the file \
             {} that `quorate init` wrote, or set QUORATE_CLUSTER_SECRET",
            secret::FILE_NAME
        ))),
    }
}

/// Asks the seed, for a while if it does not answer. Says by which secret it was convinced.
fn invited(seed: &str, secrets: &[Secret]) -> Result<(Secret, Invitation), Failure> {
    let deadline = Instant::now() + ASK_FOR;
    let mut refused = None;
    for secret in secrets {
        match asked_until(seed, secret, deadline)? {
            SeedAnswer::Invitation(invitation) => return Ok((*secret, *invitation)),
            SeedAnswer::Refused(failure) => refused = Some(failure),
        }
    }
    Err(refused.expect("a file holds a secret"))
}

/// What a seed says.
enum SeedAnswer {
    Invitation(Box<Invitation>),
    /// It knows another secret.
    Refused(Failure),
}

fn asked_until(seed: &str, secret: &Secret, deadline: Instant) -> Result<SeedAnswer, Failure> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let error = match ask(seed, secret, left.min(TRY_FOR)) {
            Ok(told) => return told,
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(Failure::failed(format!(
                    "{seed} answers, but is no HTTP door; give the address of a host's HTTP door, \
                     port 7412 by default"
                )));
            }
            Err(error) => error,
        };
        if Instant::now() + AGAIN >= deadline {
            let mut text = format!(
                "the seed {seed} did not answer within {} s: {error}; give the HTTP door of a \
                 host that runs",
                ASK_FOR.as_secs()
            );
            if error.kind() == ErrorKind::UnexpectedEof {
                text.push_str(", port 7412 by default: it may be that this is no HTTP door");
            }
            return Err(Failure::new(Code::NoQuorum, text));
        }
        std::thread::sleep(AGAIN);
    }
}

/// Asks once. An error of the connection, or a seed that is not ready, is worth another try.
fn ask(seed: &str, secret: &Secret, within: Duration) -> io::Result<Result<SeedAnswer, Failure>> {
    let path = format!("/join?protocol={VERSION}");
    let (asked, request) = prove(Purpose::Join, secret);
    let (status, body) = http::exchange(seed, &path, &request, within)?;
    if status == 200 {
        return Ok(envelope::read(asked, &body).ok_or_else(|| not_proven(seed)).and_then(|text| {
            let invitation = judge(seed, &text)?;
            Ok(SeedAnswer::Invitation(Box::new(invitation)))
        }));
    }
    let answer = http::text_of(status, body)?;
    match status {
        503 | 504 => Err(io::Error::other(http::error_of(&answer))),
        403 => Ok(Ok(SeedAnswer::Refused(refusal(seed, &answer)))),
        404 => {
            let text = format!("{seed} knows no joins; is it a host of another release?");
            Ok(Err(Failure::failed(text)))
        }
        _ => Ok(Err(refusal(seed, &answer))),
    }
}

fn refusal(seed: &str, answer: &http::HttpAnswer) -> Failure {
    let why = http::error_of(answer);
    Failure::failed(format!("the seed {seed} refuses: {why}; nothing was written"))
}

fn not_proven(seed: &str) -> Failure {
    Failure::failed(format!(
        "the seed {seed} does not prove that it knows the secret: it is no host of this cluster; \
         nothing was written"
    ))
}

fn judge(seed: &str, text: &str) -> Result<Invitation, Failure> {
    let invitation: Invitation = serde_json::from_str(text).map_err(|error| {
        Failure::failed(format!("the answer of the seed {seed} is no invitation: {error}"))
    })?;
    if invitation.protocol != VERSION {
        return Err(Failure::failed(format!(
            "the seed {seed} speaks protocol {}, this build speaks {VERSION}; join with the \
             release that the cluster runs",
            invitation.protocol
        )));
    }
    Ok(invitation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn nobody_joins_hosts_of_other_machines_by_an_address_of_its_own_alone() {
        let check = |own: &str, others: &[&str]| check_reachable(own, others.iter().copied());
        for own in ["127.0.0.1:7411", "localhost:7411", "[::1]:7411"] {
            let refused = check(own, &["127.0.0.1:7411", "10.0.0.1:7411"]).expect_err("refused");
            assert!(refused.message.contains("--address"), "{refused}");
            check(own, &["127.0.0.1:7421", "localhost:7431"]).expect("they are of one machine");
        }
        check("10.0.0.4:7411", &["10.0.0.1:7411"]).expect("it is found there");
    }

    #[test]
    fn a_seed_that_ends_without_a_word_is_asked_again() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let seed = listener.local_addr().expect("it is bound").to_string();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for body in ["", r#"{"error":"it has started again"}"#] {
                    let (mut stream, _) = listener.accept().expect("it is asked");
                    let _ = stream.read(&mut [0; 4096]).expect("a request");
                    if !body.is_empty() {
                        let length = body.len();
                        let head = format!("HTTP/1.1 409 X\r\nContent-Length: {length}\r\n\r\n");
                        stream.write_all((head + body).as_bytes()).expect("it is read");
                    }
                }
            });
            let deadline = Instant::now() + Duration::from_secs(60);
            let told = asked_until(&seed, &Secret([7; 32]), deadline);
            let refused = told.err().expect("it refuses").message;
            assert!(refused.contains("it has started again"), "{refused}");
        });
    }
}
