//! What clients ask: frames in, acts of the engine out.
//!
//! | file | what it holds |
//! |---|---|
//! | `connect` | the first request, and its answer |
//! | `request` | every other one |
//! | `items` | what is asked of single nodes |
//! | `multi` | several of these at once |
//! | `path` | which paths there can be |

pub(crate) mod connect;
mod items;
mod multi;
mod path;
pub(crate) mod request;
