//! What a lane asks of the failure detector: to hear soon that a peer is silent.
//!
//! Without it a silent host is known after one and a half seconds or more, from
//! [`crate::news::News::Ring`]. A lane that must act sooner asks by
//! [`crate::effects::Effects::observe`], and hears [`crate::news::News::Silence`].

use crate::ids::NodeId;
use crate::time::Span;
use alloc::sync::Arc;

/// How often a peer is asked whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Every {
    /// 50 ms: silence is known in less than 450 ms.
    Ms50,
    /// 100 ms: in less than 900 ms.
    Ms100,
    /// 200 ms: in less than 1800 ms.
    Ms200,
}

impl Every {
    /// The time between two questions.
    #[must_use]
    pub const fn span(self) -> Span {
        match self {
            Every::Ms50 => Span::millis(50),
            Every::Ms100 => Span::millis(100),
            Every::Ms200 => Span::millis(200),
        }
    }
}

/// The peers that one lane has observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The peers. One that the overlay does not know is observed once it does.
    pub peers: Arc<[NodeId]>,
    /// How often each is asked at least.
    pub every: Every,
}

impl Observation {
    /// Nobody is observed.
    #[must_use]
    pub fn none() -> Observation {
        Observation { peers: Arc::from([]), every: Every::Ms200 }
    }
}
