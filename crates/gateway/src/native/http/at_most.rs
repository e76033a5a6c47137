//! Lists in a body that are no longer than they may be.

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// At most `N` of something: what comes after them is not kept.
pub struct AtMost<const N: usize, T>(pub Vec<T>);

struct List<const N: usize, T>(PhantomData<T>);

impl<'de, const N: usize, T: Deserialize<'de>> Visitor<'de> for List<N, T> {
    type Value = AtMost<N, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {N}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<AtMost<N, T>, A::Error> {
        let mut found = Vec::new();
        while let Some(one) = list.next_element()? {
            if found.len() == N {
                return Err(A::Error::custom(format_args!("more than {N} in the list")));
            }
            found.push(one);
        }
        Ok(AtMost(found))
    }
}

impl<'de, const N: usize, T: Deserialize<'de>> Deserialize<'de> for AtMost<N, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AtMost<N, T>, D::Error> {
        deserializer.deserialize_seq(List(PhantomData))
    }
}
