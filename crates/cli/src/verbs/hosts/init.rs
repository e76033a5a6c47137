//! `init`: the data directories of a new cluster.

use crate::config::values::path_parser;
use crate::exit::{Code, Failure};
use crate::output::{Output, columns};
use crate::provision::{self, Doors, Plan, ProvisionError, keyspace};
use quorate_host::proof::secret;
use quorate_kernel::keyspace::NewKeyspace;
use quorate_kernel::storage::Durability;
use serde_json::json;
use std::io::{Write, stdout};
use std::path::PathBuf;

/// The arguments of `init`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Move each directory to its machine, then run there:\n  \
                        quorate server --data host-N\n\
                        with --insecure where the doors of clients do not listen on loopback: \
                        clients prove nothing yet.\n\n\
                        Example: quorate init --output cluster --host 10.0.0.1 --host 10.0.0.2 \
                        --host 10.0.0.3")]
pub struct Args {
    /// Where the directories host-1, host-2 and so on are written
    #[arg(long, value_name = "DIR", value_parser = path_parser())]
    output: PathBuf,
    /// Where the other hosts find a host, an IP address or a name, once for each host; port 7411 if
    /// none is given, and its other doors take the ports after it
    #[arg(long = "host", required = true, value_name = "ADDRESS")]
    hosts: Vec<String>,
    /// How durable data is before it is acknowledged: sync, periodic=50ms or memory
    #[arg(long, default_value = "sync", value_name = "LEVEL")]
    durability: Durability,
    /// A keyspace, once for each:
    /// NAME=ENGINE[,replicas=1|3|5|7][,durability=LEVEL][,value=SIZE][,order=hash|key]
    /// [,mode=atomic|eventual], or NAME=causal with any of its settings; if none is given,
    /// default=linearizable
    #[arg(long = "keyspace", value_name = "SPEC", value_parser = keyspace::parse)]
    keyspaces: Vec<NewKeyspace>,
    /// The failure zone of a host, once for each in the order of the hosts, or not at all; the
    /// replicas of a key are kept in different zones where there are enough
    #[arg(long = "zone", value_name = "NAME")]
    zones: Vec<String>,
    /// How many places on the ring each host has: more spread the load more evenly, and cost more
    /// groups
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    tokens: usize,
    #[command(flatten)]
    format: Output,
}

/// Runs `init`.
///
/// # Errors
/// The cluster asked for cannot be, or a directory cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let hosts = args.hosts.iter().map(|address| doors(address));
    let mut keyspaces = args.keyspaces.clone();
    if keyspaces.is_empty() {
        keyspaces.push(keyspace::standard());
    }
    let plan = Plan {
        hosts: hosts.collect::<Result<_, _>>()?,
        zones: args.zones.clone(),
        tokens: args.tokens,
        keyspaces,
        durability: args.durability,
    };
    let identity = provision::write(&plan, &args.output)?;
    let directories: Vec<(u32, PathBuf)> = identity
        .hosts
        .iter()
        .map(|record| (record.host, provision::host_directory(&args.output, record.host)))
        .collect();
    let secret = args.output.join(secret::FILE_NAME);
    if args.format.is_json() {
        let hosts: Vec<_> = directories
            .iter()
            .zip(&plan.hosts)
            .map(|((host, data), doors)| {
                let mut object = json!({ "host": host, "data": data });
                for (door, address) in doors.all() {
                    object[door] = address.to_string().into();
                }
                object["cluster"] = doors.cluster.clone().into();
                object
            })
            .collect();
        let object = json!({
            "cluster": identity.cluster.to_string(),
            "secret_file": secret,
            "hosts": hosts,
        });
        writeln!(stdout(), "{object}")?;
        return Ok(());
    }
    let lines: Vec<Vec<String>> = directories
        .iter()
        .zip(&plan.hosts)
        .map(|((host, data), doors)| {
            let mut line = vec![host.to_string(), data.display().to_string()];
            line.push(doors.cluster.clone());
            line.extend(doors.all().iter().skip(1).map(|(_, address)| address.to_string()));
            line
        })
        .collect();
    let table = table(&plan.hosts[0], &lines);
    let mut command = format!("quorate server --data {}", directories[0].1.display());
    if plan.hosts.iter().any(Doors::is_exposed) {
        command.push_str(
            " --insecure\nIts doors of clients can be reached by other machines, and clients need \
             no password: --insecure says that this is meant",
        );
    }
    write!(
        stdout(),
        "Cluster {} was written:\n\n{table}\nStart each host with its directory: {command}\n\
         Hosts that join later need {}; keep it as you keep a password.\n",
        identity.cluster,
        secret.display(),
    )?;
    Ok(())
}

/// The doors of one host.
fn doors(address: &str) -> Result<Doors, Failure> {
    // Other flags take lists, and this text is no address.
    if address.contains(',') {
        let each = address.split(',').map(|one| format!("--host {}", one.trim()));
        let each = each.collect::<Vec<_>>().join(" ");
        let text = format!("--host takes one host, not {address:?}; give each its own: {each}");
        return Err(Failure::new(Code::Usage, text));
    }
    Ok(Doors::at(address)?)
}

/// The lines of all hosts below the names of their doors.
fn table(doors: &Doors, lines: &[Vec<String>]) -> String {
    let names: Vec<String> = doors.all().iter().map(|(door, _)| door.to_uppercase()).collect();
    let mut head = vec!["HOST", "DATA"];
    head.extend(names.iter().map(String::as_str));
    columns("  ", &head, lines)
}

impl From<ProvisionError> for Failure {
    fn from(error: ProvisionError) -> Failure {
        match error {
            ProvisionError::Directory(error) => error.into(),
            ProvisionError::Io { .. } | ProvisionError::Secret(_) | ProvisionError::Random(_) => {
                Failure::failed(error.to_string())
            }
            _ => Failure::new(Code::Usage, error.to_string()),
        }
    }
}
