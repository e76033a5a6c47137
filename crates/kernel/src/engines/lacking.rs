//! The refusal of what a keyspace's engine cannot do: the one place where it is made, for all
//! doors, from what engines can do.

use crate::engine::{Capability, Served};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// What was asked needs something that the keyspace's engine cannot do. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    asked: String,
    needs: Capability,
    engine: &'static str,
    instead: Option<&'static str>,
    able: Vec<&'static str>,
}

impl Lacking {
    /// What is wrong.
    #[must_use]
    pub fn what(&self) -> String {
        let Lacking { asked, needs, engine, .. } = self;
        format!("{asked} needs an engine with {needs}; this keyspace is {engine}")
    }

    /// What would be right.
    #[must_use]
    pub fn right(&self) -> String {
        let able = match &self.able[..] {
            [] => None,
            able => Some(format!("use a keyspace of the engine {}", able.join(" or "))),
        };
        match (self.instead, able) {
            (None, None) => "no engine of this version can do it".to_owned(),
            (None, Some(able)) => able,
            (Some(instead), None) => instead.to_owned(),
            (Some(instead), Some(able)) => format!("{instead}, or {able}"),
        }
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what(), self.right())
    }
}

impl core::error::Error for Lacking {}

impl Served {
    /// Whether the keyspace's engine can do what something that is asked needs.
    ///
    /// # Errors
    /// It cannot. The refusal names what was asked, what this keyspace offers instead, and the
    /// engines that can.
    pub fn require(
        &self,
        needs: Capability,
        asked: &str,
        instead: Option<&'static str>,
    ) -> Result<(), Lacking> {
        if self.can(needs) {
            return Ok(());
        }
        let able = self.engines.iter().filter(|engine| engine.can(needs));
        let able = able.map(|engine| engine.name).collect();
        let (asked, engine) = (asked.to_owned(), self.engine.name);
        Err(Lacking { asked, needs, engine, instead, able })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, testing};
    use crate::ids::LaneId;
    use crate::keyspace::{Keyspace, Settings};
    use crate::operation::Operation;
    use alloc::string::ToString;
    use alloc::sync::Arc;
    use bytes::Bytes;

    const PLAIN: Engine =
        Engine { name: "plain", can: &[Capability::Values, Capability::Expiry], ..testing::ENGINE };
    const RICH: Engine = Engine {
        name: "rich",
        can: &[Capability::Values, Capability::Siblings, Capability::Listing],
        ..testing::ENGINE
    };

    fn served() -> Served {
        let keyspace = Keyspace::new("k", LaneId(16), "plain", Settings::new(), 1);
        Served::new(Arc::new(keyspace), &PLAIN, &[&PLAIN, &RICH])
    }

    #[test]
    fn what_cannot_be_done_is_said_with_what_can() {
        let served = served();
        let told = |needs, asked, instead| {
            served.require(needs, asked, instead).map_err(|lacking| lacking.to_string())
        };
        assert_eq!(told(Capability::Expiry, "SETEX", None), Ok(()));
        let table = [
            (
                told(Capability::Transactions, "INCR", None),
                "INCR needs an engine with transactions; this keyspace is plain: no engine of this \
                 version can do it",
            ),
            (
                told(Capability::Listing, "SCAN", None),
                "SCAN needs an engine with listings of keys; this keyspace is plain: use a \
                 keyspace of the engine rich",
            ),
            (
                told(Capability::Siblings, "CGET", Some("use GET")),
                "CGET needs an engine with values side by side; this keyspace is plain: use GET, \
                 or use a keyspace of the engine rich",
            ),
            (
                told(Capability::Replies, "it", Some("leave it out")),
                "it needs an engine with reads of a chosen number of replicas; this keyspace is \
                 plain: leave it out",
            ),
        ];
        for (told, text) in table {
            assert_eq!(told, Err(text.to_string()));
        }
    }

    #[test]
    fn an_engine_lacks_what_an_operation_needs_and_it_cannot() {
        let key = || Bytes::from_static(b"k");
        let lacks = |operation: Operation| (PLAIN.lacks(&operation), RICH.lacks(&operation));
        let put = Operation::put(key(), key());
        assert_eq!(lacks(put), (None, None));
        assert_eq!(lacks(Operation::delete(key())), (None, None));
        assert_eq!(lacks(Operation::get(key())), (None, None));
        let siblings = Some(Capability::Siblings);
        assert_eq!(lacks(Operation::get_all(key(), None)), (siblings, None));
        assert_eq!(lacks(Operation::delete_over(key(), key())), (siblings, None));
        assert_eq!(lacks(Operation::put_over(key(), key(), key(), None)), (siblings, None));
        let some = Operation::get_all(key(), Some(2));
        assert_eq!(lacks(some), (siblings, Some(Capability::Replies)));
        let scan = Operation::Scan { from: Default::default(), limit: 1 };
        assert_eq!(lacks(scan), (Some(Capability::Listing), None));
    }
}
