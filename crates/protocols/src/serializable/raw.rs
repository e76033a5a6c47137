//! Bytes inside of what is encoded.

use bytes::Bytes;
use core::fmt;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A key, a value, or a part of one.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Raw(pub Bytes);

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl core::ops::Deref for Raw {
    type Target = Bytes;
    fn deref(&self) -> &Bytes {
        &self.0
    }
}

impl core::borrow::Borrow<Bytes> for Raw {
    fn borrow(&self) -> &Bytes {
        &self.0
    }
}

impl From<Bytes> for Raw {
    fn from(bytes: Bytes) -> Raw {
        Raw(bytes)
    }
}

impl From<&'static str> for Raw {
    fn from(text: &'static str) -> Raw {
        Raw(Bytes::from_static(text.as_bytes()))
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Raw, D::Error> {
        from.deserialize_bytes(Copied)
    }
}

/// Copies what it is shown: what is decoded lives longer than the frame.
struct Copied;

impl Visitor<'_> for Copied {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Raw, E> {
        Ok(Raw(Bytes::copy_from_slice(bytes)))
    }
}
