//! Records of an identity as texts: ids, tokens and secrets in hexadecimal, since not every
//! reader of TOML or JSON takes whole numbers of 64 bits.

use crate::identity::HostRecord;
use quorate_kernel::ids::{ClusterId, NodeId};
use serde::{Deserialize, Serialize};

/// A host as a text: in the identity file, and in what a host that joins is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of `HostRecord`")]
pub struct HostText {
    pub host: u32,
    pub node: String,
    pub address: String,
    pub zone: String,
    pub tokens: Vec<String>,
}

impl From<&HostRecord> for HostText {
    fn from(record: &HostRecord) -> HostText {
        HostText {
            host: record.host,
            node: record.node.to_string(),
            address: record.address.clone(),
            zone: record.zone.clone(),
            tokens: record.tokens.iter().map(|token| of_word(*token)).collect(),
        }
    }
}

impl TryFrom<HostText> for HostRecord {
    type Error = String;

    fn try_from(text: HostText) -> Result<HostRecord, String> {
        let tokens = text.tokens.iter().map(|token| word(token, "tokens"));
        Ok(HostRecord {
            host: text.host,
            node: NodeId(word(&text.node, "node")?),
            address: text.address,
            zone: text.zone,
            tokens: tokens.collect::<Result<_, _>>()?,
        })
    }
}

/// Bytes in hexadecimal.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A token on the ring in hexadecimal.
fn of_word(word: u64) -> String {
    format!("{word:016x}")
}

fn wrong(field: &str) -> String {
    format!("`{field}` is not hexadecimal")
}

/// Reads a number.
///
/// # Errors
/// What is wrong with the text; `field` is what it is called.
pub fn word(text: &str, field: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|_| wrong(field))
}

/// Reads a cluster's id.
///
/// # Errors
/// What is wrong with the text.
pub fn cluster(text: &str) -> Result<ClusterId, String> {
    u128::from_str_radix(text, 16).map(ClusterId).map_err(|_| wrong("cluster"))
}

/// Reads so many bytes, each as two digits.
///
/// # Errors
/// What is wrong with the text; `field` is what it is called.
pub fn bytes<const COUNT: usize>(text: &str, field: &str) -> Result<[u8; COUNT], String> {
    let mut bytes = [0; COUNT];
    if text.len() != 2 * COUNT || !text.is_ascii() {
        return Err(format!("`{field}` is not {} hexadecimal digits", 2 * COUNT));
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong(field))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_hexadecimal_is_named() {
        assert_eq!(bytes("00ff", "secret"), Ok([0, 255]));
        assert_eq!(bytes::<2>("00f", "secret"), Err("`secret` is not 4 hexadecimal digits".into()));
        assert_eq!(bytes::<2>("00é", "secret"), Err("`secret` is not 4 hexadecimal digits".into()));
        assert_eq!(bytes::<2>("00fg", "secret"), Err("`secret` is not hexadecimal".into()));
        let host = HostText {
            host: 1,
            node: String::from("x"),
            address: String::new(),
            zone: String::new(),
            tokens: Vec::new(),
        };
        assert_eq!(HostRecord::try_from(host), Err(String::from("`node` is not hexadecimal")));
    }
}
