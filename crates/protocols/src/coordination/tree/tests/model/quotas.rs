//! Quotas as simply as they can be said: whoever wants to know what there is counts it.

use super::{Model, Result, is_path};
use bytes::Bytes;
use quorate_kernel::tree::Failure;
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// The limits of a text, by name; none if it cannot be read.
fn read(data: Option<&[u8]>) -> Option<BTreeMap<String, i64>> {
    let text = String::from_utf8(data.unwrap_or_default().to_vec()).ok()?;
    let mut limits = BTreeMap::new();
    for pair in text.replace(';', ",").split(',').filter(|pair| !pair.is_empty()) {
        let parts = pair.split('=').collect::<Vec<_>>();
        let number = match *parts.get(1)? {
            "" => -1,
            number => number.parse().ok()?,
        };
        limits.insert(parts[0].to_string(), number);
    }
    Some(limits)
}

fn named<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    path.strip_prefix("/zookeeper/quota")?.strip_suffix(name)
}

fn is_in(path: &str, above: &str) -> bool {
    path == above || path.starts_with(&format!("{above}/"))
}

impl Model {
    /// What is limited, and its limits.
    fn limited(&self) -> Vec<(String, BTreeMap<String, i64>)> {
        let of = self.nodes.iter().filter_map(|(path, node)| {
            let limited = named(path, "/zookeeper_limits")?;
            Some((limited.to_string(), read(node.data.as_deref()).expect("it was read")))
        });
        of.collect()
    }

    fn counts(&self, limited: &str) -> (i64, i64) {
        let under = self.nodes.iter().filter(|(path, _)| is_in(path, limited));
        let bytes = under.clone().map(|(_, node)| node.data.as_ref().map_or(0, |it| it.len()));
        (under.count() as i64, bytes.sum::<usize>() as i64)
    }

    fn text(&self, limited: &str) -> Bytes {
        let (nodes, bytes) = self.counts(limited);
        format!("count={nodes},bytes={bytes}").into()
    }

    /// What a node gets of the data that it is given.
    pub(super) fn given(&self, path: &str, data: Option<&[u8]>) -> Result<Option<Bytes>> {
        if named(path, "/zookeeper_limits").is_some() && read(data).is_none() {
            return Err(Failure::BadArguments);
        }
        let shown = named(path, "/zookeeper_stats");
        let shown = shown.filter(|of| self.limited().iter().any(|(limited, _)| limited == of));
        Ok(match shown {
            Some(limited) => Some(self.text(limited)),
            None => data.map(Bytes::copy_from_slice),
        })
    }

    /// Whether the limits of what there is let more come.
    pub(super) fn has_room(&self, path: &str, nodes: i64, bytes: i64) -> Result<()> {
        for (limited, limits) in self.limited().iter().filter(|(of, _)| is_in(path, of)) {
            let (has, held) = self.counts(limited);
            let most = |name| limits.get(name).copied().filter(|it| *it >= 0).unwrap_or(i64::MAX);
            let is_full = nodes > 0 && has + nodes > most("countHardLimit");
            if is_full || bytes > 0 && held + bytes > most("byteHardLimit") {
                return Err(Failure::Quota);
            }
        }
        Ok(())
    }

    /// What a node that is to be made gets of the data that it is given, if it may be made.
    pub(super) fn new_data(&self, path: &str, data: Option<&[u8]>) -> Result<Option<Bytes>> {
        let data = self.given(path, data)?;
        if let Some(limited) = named(path, "/zookeeper_limits") {
            let mut others = self.limited().into_iter().map(|(other, _)| other);
            let is_other = others.any(|other| is_in(&other, limited) || is_in(limited, &other));
            if !is_path(limited) || is_in(limited, "/zookeeper") || is_other {
                return Err(Failure::BadArguments);
            }
        }
        self.has_room(path, 1, data.as_ref().map_or(0, Bytes::len) as i64)?;
        Ok(data)
    }

    /// All that is limited shows what there is.
    pub(super) fn show(&mut self) {
        for (limited, _) in self.limited() {
            let text = self.text(&limited);
            let path = format!("/zookeeper/quota{limited}/zookeeper_stats");
            if let Some(stats) = self.nodes.get_mut(&path) {
                stats.stat.data_length = text.len() as u32;
                stats.data = Some(text);
            }
        }
    }
}
