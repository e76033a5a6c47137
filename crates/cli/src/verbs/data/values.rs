//! `get`, `put`, `del`.

use crate::client::{Client, Target, unexpected};
use crate::exit::{Code, Failure};
use crate::output::put_bytes;
use quorate_doors::resp::client::RespReply;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::io::{IsTerminal, Read, Write, stdin, stdout};
use std::os::unix::ffi::OsStrExt;

/// The arguments of `get`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The value is printed byte for byte. Exit code 3 if the key is absent.\n\
                        Example: quorate get greeting")]
pub struct GetArgs {
    key: OsString,
    #[command(flatten)]
    target: Target,
}

/// The arguments of `put`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: quorate put greeting hello\n\
                        Example: quorate put photo - < photo.jpg")]
pub struct PutArgs {
    key: OsString,
    /// The value; `-` takes it from standard input, to its end
    #[arg(allow_hyphen_values = true)]
    value: OsString,
    #[command(flatten)]
    target: Target,
}

/// The arguments of `del`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Prints how many of the keys were there when they were looked at, before \
                        they were deleted; a key that was not is no failure. The number is no \
                        atomic part of the delete: beside other writes of the same key it may be \
                        off by one for each key either way, as when two deletes of one value both \
                        print 1.\n\n\
                        Example: quorate del greeting")]
pub struct DelArgs {
    #[arg(required = true)]
    keys: Vec<OsString>,
    #[command(flatten)]
    target: Target,
}

/// Runs `get`.
///
/// # Errors
/// [`Code::NotFound`] if the key is absent; the others as [`Client`] says.
pub fn get(args: &GetArgs) -> Result<(), Failure> {
    let key = args.key.as_bytes();
    let value = match Client::connect(&args.target)?.call(&[b"GET", key])? {
        RespReply::Null => {
            let text = format!("no key {}", args.key.display());
            return Err(Failure::new(Code::NotFound, text));
        }
        RespReply::Bulk(value) => value,
        other => return Err(unexpected(&other)),
    };
    let mut out = stdout().lock();
    if args.target.output.is_json() {
        let mut object = Map::new();
        put_bytes(&mut object, "key", key);
        put_bytes(&mut object, "value", &value);
        writeln!(out, "{}", Value::Object(object))?;
    } else {
        out.write_all(&value)?;
        if out.is_terminal() {
            out.write_all(b"\n")?;
        }
    }
    Ok(out.flush()?)
}

/// Runs `put`.
///
/// # Errors
/// [`Code::Timeout`] if the write may have been applied; the others as [`Client`] says.
pub fn put(args: &PutArgs) -> Result<(), Failure> {
    let value = given(&args.value)?;
    let reply = Client::connect(&args.target)?.call(&[b"SET", args.key.as_bytes(), &value])?;
    if reply.as_bytes().is_none_or(|text| text != "OK") {
        return Err(unexpected(&reply));
    }
    if args.target.output.is_json() {
        writeln!(stdout(), "{{\"ok\":true}}")?;
    } else if stdout().is_terminal() {
        writeln!(stdout(), "ok")?;
    }
    Ok(())
}

/// What is given as a value: `-` is standard input, to its end.
///
/// # Errors
/// It cannot be read.
pub fn given(value: &OsString) -> Result<Vec<u8>, Failure> {
    if value != "-" {
        return Ok(value.as_bytes().to_vec());
    }
    let mut all = Vec::new();
    let read = stdin().lock().read_to_end(&mut all);
    read.map(|_| all).map_err(|error| Failure::failed(format!("standard input: {error}")))
}

/// Runs `del`.
///
/// # Errors
/// [`Code::Timeout`] if a delete may have been applied; the others as [`Client`] says.
pub fn del(args: &DelArgs) -> Result<(), Failure> {
    let mut command: Vec<&[u8]> = vec![b"DEL"];
    command.extend(args.keys.iter().map(|key| key.as_bytes()));
    let deleted = match Client::connect(&args.target)?.call(&command)? {
        RespReply::Integer(count) => count,
        other => return Err(unexpected(&other)),
    };
    if args.target.output.is_json() {
        writeln!(stdout(), "{{\"deleted\":{deleted}}}")?;
    } else {
        writeln!(stdout(), "{deleted}")?;
    }
    Ok(())
}
