//! How a node whose data is incomplete gets it: transfers and their sources, and what is done
//! where nobody is left to ask.

pub(crate) mod amnesia;
pub(crate) mod drive;
pub(crate) mod epoch;
pub(crate) mod fetch;
pub(crate) mod gather;
mod held;
pub(crate) mod loss;
pub(crate) mod source;
pub(crate) mod told;
pub(crate) mod transfer;
