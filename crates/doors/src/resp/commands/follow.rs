//! Channels: what the server tells of itself. There is one, `events`; nobody publishes.

use super::spec::{Handler, NO_KEYS, Run, Spec};
use super::{Cx, Handled, is};
use crate::resp::error::{CommandError, shown};
use crate::resp::reply::{Encoder, Protocol};
use crate::resp::requests::frame::Command;
use alloc::vec::Vec;

/// The channel of what happens to keyspaces and hosts.
pub(crate) const CHANNEL: &str = "events";
/// What a connection in version 2 may ask while it follows a channel: there, what it is told looks
/// like a reply.
const ALLOWED: &[&str] = &["subscribe", "unsubscribe", "ping", "quit", "reset"];

const fn spec(name: &'static str, arity: i64, summary: &'static str, run: Handler) -> Spec {
    Spec {
        name,
        arity,
        flags: &["pubsub", "noscript", "loading", "stale"],
        keys: NO_KEYS,
        group: "pubsub",
        since: "2.0.0",
        summary,
        run: Run::Handler(run),
    }
}

/// The commands about channels.
pub(crate) const SPECS: &[Spec] = &[
    spec("subscribe", -2, "Follow the channel events", subscribe),
    spec("unsubscribe", -1, "Follow no channel any more", unsubscribe),
];

/// Refuses what a connection may not ask while it follows a channel.
pub(super) fn check(cx: &Cx<'_>, command: &'static str) -> Result<(), CommandError> {
    let is_bound = cx.client.is_following && cx.client.protocol == Protocol::Resp2;
    match is_bound && !ALLOWED.contains(&command) {
        true => Err(CommandError::Following { command }),
        false => Ok(()),
    }
}

fn subscribe(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    if let Some(unknown) = command.args().skip(1).find(|channel| !is(channel, CHANNEL)) {
        return Err(CommandError::Channel { name: shown(unknown, 128) });
    }
    cx.client.is_following = true;
    let channels: Vec<&[u8]> = command.args().skip(1).collect();
    Ok(cx.encoded(|out| {
        for channel in channels {
            told(out, "subscribe", Some(channel), 1);
        }
    }))
}

fn unsubscribe(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let was_following = cx.client.is_following;
    let channels: Vec<&[u8]> = command.args().skip(1).collect();
    let is_meant = channels.is_empty() || channels.iter().any(|channel| is(channel, CHANNEL));
    cx.client.is_following &= !is_meant;
    let left = i64::from(cx.client.is_following);
    Ok(cx.encoded(|out| {
        if channels.is_empty() {
            let channel = was_following.then_some(CHANNEL.as_bytes());
            return told(out, "unsubscribe", channel, left);
        }
        for channel in channels {
            told(out, "unsubscribe", Some(channel), left);
        }
    }))
}

fn told(out: &mut Encoder<'_>, what: &str, channel: Option<&[u8]>, count: i64) {
    out.push(3);
    out.bulk(what.as_bytes());
    match channel {
        Some(channel) => out.bulk(channel),
        None => out.null(),
    }
    out.integer(count);
}
