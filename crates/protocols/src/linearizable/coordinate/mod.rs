//! What a node does for the clients that ask it: the phases of their operations, and where each
//! operation belongs.

pub(crate) mod by_id;
pub(crate) mod coordinator;
pub(crate) mod examine;
pub(crate) mod explain;
pub(crate) mod locate;
pub(crate) mod operations;
pub(crate) mod preference;
pub(crate) mod question;
pub(crate) mod read;
pub(crate) mod retry;
pub(crate) mod routes;
pub(crate) mod rtt;
pub(crate) mod scan;
pub(crate) mod write;
