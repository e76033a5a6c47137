//! Nodes as JSON lines: an object a line, parents before their children.

use super::Copied;
use crate::output::put_bytes;
use quorate_client::v1::{Acl, NodeKind};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A node as a line.
pub fn write(node: &Copied) -> String {
    let mut object = Map::new();
    object.insert(String::from("path"), node.path.as_str().into());
    put_bytes(&mut object, "data", &node.data);
    let one = |it: &Acl| json!({ "permissions": it.permissions, "scheme": it.scheme, "id": it.id });
    let acl: Vec<Value> = node.acl.iter().map(one).collect();
    object.insert(String::from("acl"), acl.into());
    Value::Object(object).to_string()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    path: String,
    data: Option<String>,
    data_hex: Option<String>,
    #[serde(default)]
    acl: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    permissions: u32,
    scheme: String,
    id: String,
}

/// A node out of a line; why it is none.
pub fn read(line: &str) -> Result<Copied, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let data = match (line.data, line.data_hex) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(digits)) => unhex(&digits).ok_or("data_hex is not hexadecimal")?,
        (None, None) => Vec::new(),
        (Some(_), Some(_)) => return Err(String::from("data is given twice")),
    };
    let one = |it: Entry| Acl { permissions: it.permissions, scheme: it.scheme, id: it.id };
    let acl = line.acl.into_iter().map(one).collect();
    Ok(Copied { path: line.path, data, acl, kind: NodeKind::Persistent, ttl_ms: 0 })
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let is_hex = digits.len().is_multiple_of(2) && digits.bytes().all(|it| it.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    is_hex.then(|| (0..digits.len()).step_by(2).filter_map(byte).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let acl = vec![Acl { permissions: 1, scheme: "world".into(), id: "anyone".into() }];
        for data in [b"text".to_vec(), vec![0xff, 0], Vec::new()] {
            let (path, acl) = (String::from("/a b/ü"), acl.clone());
            let node = Copied { path, data, acl, kind: NodeKind::Persistent, ttl_ms: 0 };
            assert_eq!(read(&write(&node)), Ok(node));
        }
        assert_eq!(read(r#"{"path":"/a"}"#).expect("the rest may be left out").acl, []);
        for bad in [
            "",
            "{}",
            r#"{"path":"/a","more":1}"#,
            r#"{"path":"/a","data":"","data_hex":""}"#,
            r#"{"path":"/a","data_hex":"f"}"#,
            r#"{"path":"/a","data_hex":"+f"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
