//! How groups change: who proposes, how a view is installed, who comes and who leaves.

pub(crate) mod alone;
pub(crate) mod conditions;
pub(crate) mod former;
pub(crate) mod install;
pub(crate) mod invite;
pub(crate) mod maintain;
pub(crate) mod outpaced;
pub(crate) mod parents;
pub(crate) mod propose;
