//! `get`, `put`, `del`, `scan`.

use super::client::{Client, Target, unexpected};
use super::exit::{Code, Failure};
use super::output::{Format, put_bytes};
use quorate_doors::resp::client::Reply;
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
#[command(after_help = "Prints how many of the keys existed; a key that did not is no failure.\n\
                        Example: quorate del greeting")]
pub struct DelArgs {
    #[arg(required = true)]
    keys: Vec<OsString>,
    #[command(flatten)]
    target: Target,
}

/// The arguments of `scan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "A key that is there throughout is listed at least once.\n\
                        Example: quorate scan --match 'user:*' --limit 100")]
pub struct ScanArgs {
    /// Only keys that match this pattern, with `*`, `?` and `[...]`
    #[arg(long = "match", value_name = "PATTERN")]
    pattern: Option<OsString>,
    /// Stop after this many keys
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
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
        Reply::Null => {
            let text = format!("no key {}", args.key.display());
            return Err(Failure::new(Code::NotFound, text));
        }
        Reply::Bulk(value) => value,
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
    let mut value = args.value.as_bytes().to_vec();
    if value == b"-" {
        value.clear();
        let read = stdin().lock().read_to_end(&mut value);
        read.map_err(|error| Failure::failed(format!("standard input: {error}")))?;
    }
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

/// Runs `del`.
///
/// # Errors
/// [`Code::Timeout`] if a delete may have been applied; the others as [`Client`] says.
pub fn del(args: &DelArgs) -> Result<(), Failure> {
    let mut command: Vec<&[u8]> = vec![b"DEL"];
    command.extend(args.keys.iter().map(|key| key.as_bytes()));
    let deleted = match Client::connect(&args.target)?.call(&command)? {
        Reply::Integer(count) => count,
        other => return Err(unexpected(&other)),
    };
    if args.target.output.is_json() {
        writeln!(stdout(), "{{\"deleted\":{deleted}}}")?;
    } else {
        writeln!(stdout(), "{deleted}")?;
    }
    Ok(())
}

/// Runs `scan`.
///
/// # Errors
/// As [`Client`] says; keys printed before a failure are good.
pub fn scan(args: &ScanArgs) -> Result<(), Failure> {
    let mut client = Client::connect(&args.target)?;
    let mut out = stdout().lock();
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut cursor = b"0".to_vec();
    if args.target.output.format == Format::Table {
        writeln!(out, "KEY")?;
    }
    while left > 0 {
        let count = left.min(1_000).to_string();
        let mut command: Vec<&[u8]> = vec![b"SCAN", &cursor, b"COUNT", count.as_bytes()];
        if let Some(pattern) = &args.pattern {
            command.extend([&b"MATCH"[..], pattern.as_bytes()]);
        }
        let reply = client.call(&command)?;
        let Some((next, keys)) = page(&reply) else { return Err(unexpected(&reply)) };
        for key in keys.into_iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            left -= 1;
            if args.target.output.is_json() {
                let mut object = Map::new();
                put_bytes(&mut object, "key", key);
                writeln!(out, "{}", Value::Object(object))?;
            } else {
                out.write_all(key)?;
                out.write_all(b"\n")?;
            }
        }
        if next == b"0" {
            break;
        }
        cursor = next.to_vec();
    }
    Ok(out.flush()?)
}

/// The next cursor and the keys of a page.
fn page(reply: &Reply) -> Option<(&[u8], Vec<&[u8]>)> {
    let Reply::Array(parts) = reply else { return None };
    let [next, Reply::Array(keys)] = &parts[..] else { return None };
    let keys = keys.iter().map(|key| key.as_bytes().map(|bytes| &bytes[..]));
    Some((next.as_bytes()?, keys.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &'static str) -> Reply {
        Reply::Bulk(bytes::Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn pages_are_a_cursor_and_a_list_of_keys() {
        let reply = Reply::Array(vec![bulk("17"), Reply::Array(vec![bulk("a"), bulk("b")])]);
        assert_eq!(page(&reply), Some((&b"17"[..], vec![&b"a"[..], &b"b"[..]])));
        for bad in [
            Reply::Null,
            Reply::Array(vec![bulk("0")]),
            Reply::Array(vec![bulk("0"), Reply::Array(vec![Reply::Null])]),
            Reply::Array(vec![Reply::Null, Reply::Array(vec![])]),
        ] {
            assert_eq!(page(&bad), None, "{bad:?}");
        }
    }
}
