//! `keyspace`: which keyspaces there are; make, alter and drop them while the cluster serves.

use crate::config::values::Length;
use crate::exit::{Code, Failure};
use crate::output::{Output, columns};
use quorate_gateway::web::http;
use quorate_host::engines;
use serde_json::{Value, json};
use std::io::{Write, stderr, stdout};

/// The arguments of `keyspace`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: quorate keyspace create sessions replicas=5")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a keyspace; it can be used at once
    #[command(
        after_help = "Example: quorate keyspace create sessions replicas=5 durability=memory"
    )]
    Create(CreateArgs),
    /// List the keyspaces
    #[command(after_help = "Example: quorate keyspace list")]
    List(ListArgs),
    /// Show how a keyspace is set, and what `alter` may change
    #[command(after_help = "Example: quorate keyspace show default")]
    Show(ShowArgs),
    /// Change settings of a keyspace
    #[command(after_help = "Example: quorate keyspace alter sessions replicas=3")]
    Alter(AlterArgs),
    /// Have another host hold a partition of a keyspace that has partitions
    #[command(after_help = "Example: quorate keyspace replace carts 7 10.0.0.4:7411")]
    Replace(ReplaceArgs),
    /// Drop a keyspace and delete its data on all hosts
    #[command(after_help = "Example: quorate keyspace drop sessions --yes")]
    Drop(DropArgs),
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The HTTP door of any host
    #[arg(long, env = "QUORATE_HTTP", default_value = "127.0.0.1:7412", value_name = "ADDRESS")]
    http: String,
    /// How long to wait for the answer
    #[arg(long, default_value = "10s", value_name = "TIME")]
    timeout: Length,
}

#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// Its name: a-z, 0-9, `-` and `_`, not beginning with a digit
    name: String,
    /// Its settings; `quorate keyspace show` lists those there are
    #[arg(value_name = "SETTING=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// What replicates its data; it cannot be changed later
    #[arg(long, default_value = engines::usual(), value_name = "NAME")]
    engine: String,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// Which keyspace
    name: String,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct AlterArgs {
    /// Which keyspace
    name: String,
    /// The settings to change
    #[arg(value_name = "SETTING=VALUE", value_parser = setting, required = true)]
    settings: Vec<(String, String)>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct ReplaceArgs {
    /// The keyspace's name
    name: String,
    /// The partition's number
    partition: u32,
    /// The host that shall hold it: its node id, address or number
    host: String,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct DropArgs {
    /// Which keyspace
    name: String,
    /// Yes, delete its data
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: Output,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected SETTING=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs `keyspace`.
///
/// # Errors
/// The catalog refuses, the host does not answer, or it is not known what became of the order.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Create(args) => {
            let engine = [(String::from("engine"), args.engine.clone())];
            let pairs = engine.iter().chain(&args.settings);
            let noted = order(&args.target, "create", &args.name, pairs)?;
            tell(&args.output, &args.name, "made", &noted)?;
        }
        Command::List(args) => list(args)?,
        Command::Show(args) => show(args)?,
        Command::Alter(args) => {
            let noted = order(&args.target, "alter", &args.name, args.settings.iter())?;
            tell(&args.output, &args.name, "altered", &noted)?;
        }
        Command::Replace(args) => replace(args)?,
        Command::Drop(args) => {
            if !args.yes {
                let text = format!("this deletes all data of {}; say --yes to do it", args.name);
                return Err(Failure::new(Code::Usage, text));
            }
            let noted = order(&args.target, "drop", &args.name, [].iter())?;
            tell(&args.output, &args.name, "dropped", &noted)?;
        }
    }
    Ok(())
}

/// Says what was done to a keyspace, and what the host has to remark.
fn tell(output: &Output, name: &str, done: &str, noted: &Value) -> Result<(), Failure> {
    if output.is_json() {
        writeln!(stdout(), "{}", json!({ "keyspace": name, "done": done, "note": noted["note"] }))?;
        return Ok(());
    }
    writeln!(stdout(), "keyspace {name} is {done}")?;
    if let Some(note) = noted["note"].as_str() {
        writeln!(stderr(), "note: {note}")?;
    }
    Ok(())
}

fn replace(args: &ReplaceArgs) -> Result<(), Failure> {
    let (name, partition, host) = (&args.name, args.partition, &args.host);
    let pairs =
        [(String::from("partition"), partition.to_string()), (String::from("node"), host.clone())];
    order(&args.target, "replace", name, pairs.iter())?;
    if args.output.is_json() {
        writeln!(
            stdout(),
            "{}",
            json!({ "keyspace": name, "partition": partition, "host": host })
        )?;
        return Ok(());
    }
    writeln!(
        stdout(),
        "partition {partition} of {name} goes to {host}; `quorate keyspace show {name}` tells when \
         it is there"
    )?;
    Ok(())
}

/// Gives an order; what the host answers to it.
fn order<'a>(
    target: &Target,
    verb: &str,
    name: &str,
    pairs: impl Iterator<Item = &'a (String, String)>,
) -> Result<Value, Failure> {
    let encoded = |text: &str| http::encoded(text.as_bytes());
    let mut path = format!("/control/keyspace/{verb}?name={}", encoded(name));
    for (name, value) in pairs {
        path.push_str(&format!("&{}={}", encoded(name), encoded(value)));
    }
    let answer = http::post(&target.http, &path, target.timeout.0)
        .map_err(|error| Failure::of_connection(&target.http, &error))?;
    let code = match answer.status {
        200 => return Ok(serde_json::from_str(&answer.body).unwrap_or_default()),
        404 => Code::NotFound,
        503 => Code::NoQuorum,
        504 => Code::Timeout,
        _ => Code::Failed,
    };
    Err(Failure::new(code, http::error_of(&answer)))
}

fn ask(target: &Target) -> Result<Value, Failure> {
    let answer = http::get(&target.http, "/keyspaces", target.timeout.0)
        .map_err(|error| Failure::of_connection(&target.http, &error))?;
    if answer.status != 200 {
        return Err(Failure::failed(format!("{}: {}", target.http, http::error_of(&answer))));
    }
    serde_json::from_str(&answer.body)
        .map_err(|_| Failure::failed(format!("{}: the answer is no list", target.http)))
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let all = ask(&args.target)?;
    if args.output.is_json() {
        writeln!(stdout(), "{}", all["keyspaces"])?;
        return Ok(());
    }
    let mut rows = Vec::new();
    for keyspace in all["keyspaces"].as_array().into_iter().flatten() {
        let settings = keyspace["settings"].as_object().into_iter().flatten();
        let settings = settings.map(|(name, value)| format!("{name}={}", text(value)));
        rows.push(vec![
            keyspace["number"].to_string(),
            text(&keyspace["name"]),
            text(&keyspace["engine"]),
            settings.collect::<Vec<_>>().join(" "),
        ]);
    }
    let head = ["number", "name", "engine", "settings"];
    write!(stdout(), "{}", columns("", &head, &rows))?;
    Ok(())
}

fn show(args: &ShowArgs) -> Result<(), Failure> {
    let all = ask(&args.target)?;
    let named = |keyspace: &&Value| keyspace["name"] == args.name.as_str();
    let Some(keyspace) = all["keyspaces"].as_array().and_then(|list| list.iter().find(named))
    else {
        let text = format!("no keyspace {} is known to this host", args.name);
        return Err(Failure::new(Code::NotFound, text));
    };
    if args.output.is_json() {
        writeln!(stdout(), "{keyspace}")?;
        return Ok(());
    }
    writeln!(
        stdout(),
        "keyspace {}: engine {}, number {}, made by decree {}, changed by decree {}",
        args.name,
        text(&keyspace["engine"]),
        keyspace["number"],
        keyspace["created"],
        keyspace["changed"]
    )?;
    let mut rows = Vec::new();
    let engines = all["engines"].as_array().into_iter().flatten();
    let engine = engines.filter(|engine| engine["name"] == keyspace["engine"]);
    for setting in engine.flat_map(|engine| engine["settings"].as_array().into_iter().flatten()) {
        let may = if setting["alterable"] == true { "yes" } else { "no" };
        let name = text(&setting["name"]);
        let value = text(&keyspace["settings"][&name]);
        rows.push(vec![name, value, format!("{may}: {}", text(&setting["altering"]))]);
    }
    write!(stdout(), "{}", columns("", &["setting", "value", "alter"], &rows))?;
    for (number, place) in (0..).zip(keyspace["partitions"].as_array().into_iter().flatten()) {
        let state = if place["settled"] == true { "" } else { ", fetching" };
        let number: u32 = number;
        let node = text(&place["node"]);
        writeln!(stdout(), "partition {number}: node {node} since {}{state}", place["since"])?;
    }
    for former in keyspace["former"].as_array().into_iter().flatten() {
        let (node, partition) = (text(&former["node"]), &former["partition"]);
        writeln!(stdout(), "partition {partition}: node {node} had it, and hands over")?;
    }
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
