//! `scan`: all keys, or a range of them.

use crate::client::{Client, Target, unexpected};
use crate::exit::{Code, Failure};
use crate::output::{Format, put_bytes};
use quorate_doors::resp::client::RespReply;
use quorate_host::engines;
use quorate_kernel::engine::Engine;
use quorate_protocols::order::Order;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::io::{Write, stdout};
use std::os::unix::ffi::OsStrExt;

/// The arguments of `scan`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A key that is there throughout is listed at least once. In a keyspace with \
                        order=key the keys come in their order.\n\
                        Example: quorate scan --match 'user:*' --limit 100\n\
                        Example: quorate scan --keyspace events --from 2026-11-01 --to 2026-12-01"
)]
pub struct ScanArgs {
    /// Only keys that match this pattern, with `*`, `?` and `[...]`
    #[arg(long = "match", value_name = "PATTERN")]
    pattern: Option<OsString>,
    /// Only keys from this one on; the keyspace must keep its keys in order
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Only keys before this one; the keyspace must keep its keys in order
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// Stop after this many keys
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    #[command(flatten)]
    target: Target,
}

impl ScanArgs {
    fn is_wanted(&self, key: &[u8]) -> bool {
        self.from.as_ref().is_none_or(|from| from.as_bytes() <= key) && !self.is_past(key)
    }

    fn is_past(&self, key: &[u8]) -> bool {
        self.to.as_ref().is_some_and(|to| to.as_bytes() <= key)
    }

    /// Where the scan begins: at the token of the first key of the range.
    fn cursor(&self) -> Vec<u8> {
        let from = self.from.as_ref().map_or(0, |from| Order::Key.token(from.as_bytes()));
        from.to_string().into_bytes()
    }

    /// Whether nothing of the range lies at or after a cursor.
    fn is_over(&self, cursor: &[u8]) -> bool {
        let next = str::from_utf8(cursor).ok().and_then(|text| text.parse::<u64>().ok());
        let last = self.to.as_ref().map(|to| Order::Key.token(to.as_bytes()));
        cursor == b"0" || next.zip(last).is_some_and(|(next, last)| next > last)
    }

    fn print(&self, key: &[u8], out: &mut dyn Write) -> std::io::Result<()> {
        if self.target.output.is_json() {
            let mut object = Map::new();
            put_bytes(&mut object, "key", key);
            writeln!(out, "{}", Value::Object(object))
        } else {
            out.write_all(key)?;
            out.write_all(b"\n")
        }
    }
}

/// Runs `scan`.
///
/// # Errors
/// [`Code::Usage`] for a range of a keyspace that keeps its keys by hash; otherwise as [`Client`]
/// says. Keys printed before a failure are good.
pub fn scan(args: &ScanArgs) -> Result<(), Failure> {
    let mut client = Client::connect(&args.target)?;
    if args.from.is_some() || args.to.is_some() {
        let name = args.target.keyspace.as_deref();
        let reply = client.call(&[b"INFO", b"quorate"])?;
        let Some(text) = reply.as_bytes() else { return Err(unexpected(&reply)) };
        if !is_ordered(&String::from_utf8_lossy(text), name) {
            return Err(Failure::new(Code::Usage, unordered()));
        }
    }
    let mut out = stdout().lock();
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut cursor = args.cursor();
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
        let wanted = keys.into_iter().filter(|key| args.is_wanted(key));
        for key in wanted.take(usize::try_from(left).unwrap_or(usize::MAX)) {
            left -= 1;
            args.print(key, &mut out)?;
        }
        if args.is_over(next) {
            break;
        }
        cursor = next.to_vec();
    }
    Ok(out.flush()?)
}

/// Whether `INFO quorate` says that a keyspace, or the first one, keeps its keys in order.
fn is_ordered(info: &str, name: Option<&str>) -> bool {
    let mut keyspaces = info.lines().filter_map(|line| line.strip_prefix("keyspace_"));
    let line = keyspaces.find_map(|line| {
        let (known, fields) = line.split_once(':')?;
        name.is_none_or(|name| name == known).then_some(fields)
    });
    line.is_some_and(|fields| fields.split(',').any(|field| field.trim() == "order=key"))
}

/// The next cursor and the keys of a page.
fn unordered() -> String {
    let orders =
        |engine: &&&'static Engine| engine.settings.iter().any(|setting| setting.name == "order");
    let engine = engines::all().iter().find(orders).map_or("", |engine| engine.name);
    format!(
        "this keyspace does not keep its keys in order, so it has no ranges; one that does is made \
         by `quorate keyspace create NAME --engine {engine} order=key`"
    )
}

fn page(reply: &RespReply) -> Option<(&[u8], Vec<&[u8]>)> {
    let RespReply::Array(parts) = reply else { return None };
    let [next, RespReply::Array(keys)] = &parts[..] else { return None };
    let keys = keys.iter().map(|key| key.as_bytes().map(|bytes| &bytes[..]));
    Some((next.as_bytes()?, keys.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &'static str) -> RespReply {
        RespReply::Bulk(bytes::Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn only_an_ordered_keyspace_has_ranges() {
        let info = "# Quorate\r\nkeyspace_default:engine=linearizable,order=hash\r\n\
                    keyspace_events:engine=linearizable,order=key\r\n";
        assert!(is_ordered(info, Some("events")) && !is_ordered(info, Some("default")));
        assert!(!is_ordered(info, None), "the first one");
        assert!(!is_ordered(info, Some("event")));
    }

    #[test]
    fn pages_are_a_cursor_and_a_list_of_keys() {
        let reply =
            RespReply::Array(vec![bulk("17"), RespReply::Array(vec![bulk("a"), bulk("b")])]);
        assert_eq!(page(&reply), Some((&b"17"[..], vec![&b"a"[..], &b"b"[..]])));
        for bad in [
            RespReply::Null,
            RespReply::Array(vec![bulk("0")]),
            RespReply::Array(vec![bulk("0"), RespReply::Array(vec![RespReply::Null])]),
            RespReply::Array(vec![RespReply::Null, RespReply::Array(vec![])]),
        ] {
            assert_eq!(page(&bad), None, "{bad:?}");
        }
    }
}
