//! How nodes are printed.

use crate::output::put_bytes;
use quorate_client::v1::{Stat, WatchNodeResponse};
use serde_json::{Map, Value, json};

/// How a node is, a name and a number a line, with the names that `zkCli.sh` has.
pub fn stat_text(stat: &Stat) -> String {
    let lines = [
        format!("cZxid = {:#x}", stat.czxid),
        format!("ctime = {}", stat.ctime_ms),
        format!("mZxid = {:#x}", stat.mzxid),
        format!("mtime = {}", stat.mtime_ms),
        format!("pZxid = {:#x}", stat.pzxid),
        format!("cversion = {}", stat.cversion),
        format!("dataVersion = {}", stat.version),
        format!("aclVersion = {}", stat.aversion),
        format!("ephemeralOwner = {:#x}", stat.ephemeral_owner),
        format!("dataLength = {}", stat.data_length),
        format!("numChildren = {}", stat.children),
    ];
    lines.join("\n") + "\n"
}

/// The same as JSON.
pub fn stat_json(stat: &Stat) -> Value {
    json!({
        "czxid": stat.czxid,
        "mzxid": stat.mzxid,
        "pzxid": stat.pzxid,
        "ctime_ms": stat.ctime_ms,
        "mtime_ms": stat.mtime_ms,
        "version": stat.version,
        "cversion": stat.cversion,
        "aversion": stat.aversion,
        "ephemeral_owner": format!("{:016x}", stat.ephemeral_owner),
        "data_length": stat.data_length,
        "children": stat.children,
    })
}

/// A node as one object: its path, and what else is known of it.
pub fn node_json(path: &str, data: Option<&[u8]>, stat: Option<&Stat>) -> Value {
    let mut object = Map::new();
    object.insert(String::from("path"), path.into());
    if let Some(data) = data {
        put_bytes(&mut object, "data", data);
    }
    if let Some(stat) = stat {
        object.insert(String::from("stat"), stat_json(stat));
    }
    Value::Object(object)
}

/// What has become of a node, on one line.
pub fn event(event: &WatchNodeResponse, is_json: bool) -> String {
    let WatchNodeResponse { event, path, zxid } = event;
    match is_json {
        true => json!({ "event": event, "path": path, "zxid": zxid }).to_string(),
        false => format!("{event} {path}"),
    }
}

/// The path of a child.
pub fn child(path: &str, name: &str) -> String {
    let parent = if path == "/" { "" } else { path };
    format!("{parent}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_one_object_and_an_event_one_line() {
        let stat = Stat { version: 3, ephemeral_owner: 0xa1, ..Stat::default() };
        let object = node_json("/a", Some(b"\xff"), Some(&stat));
        assert_eq!((&object["path"], &object["data_hex"]), (&json!("/a"), &json!("ff")));
        assert_eq!(object["stat"]["version"], 3);
        assert_eq!(object["stat"]["ephemeral_owner"], "00000000000000a1");
        assert!(stat_text(&stat).contains("\ndataVersion = 3\n"));
        let made = WatchNodeResponse { event: "created".into(), path: "/a b".into(), zxid: 7 };
        assert_eq!(event(&made, false), "created /a b");
        assert_eq!(event(&made, true), r#"{"event":"created","path":"/a b","zxid":7}"#);
        assert_eq!((child("/", "a"), child("/a", "b")), ("/a".into(), "/a/b".into()));
    }
}
