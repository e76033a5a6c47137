//! A client of Quorate's native API that survives the loss of hosts, and says when it cannot know.
//!
//! ```no_run
//! # async fn f() -> Result<(), quorate_client::ClientError> {
//! use quorate_client::Client;
//!
//! let client = Client::new(&["127.0.0.1:7414", "127.0.0.1:7424", "127.0.0.1:7434"])?;
//! let keyspace = client.keyspace("default");
//! keyspace.put("greeting", "hello").await?;
//! assert_eq!(keyspace.get("greeting").await?.as_deref(), Some(&b"hello"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! Reads are asked of one host after another until one answers. A write is sent to one host; if the
//! answer is lost, it is sent again to the same host under the same request id, so that it is done
//! once, and if that host cannot tell what became of it, the caller is told [`OutcomeUnknown`]
//! rather than that it failed.
//!
//! A key of a causal keyspace may have several values. [`Keyspace::siblings`] reads them all with a
//! context, [`Keyspace::put_over`] takes the place of what was seen, and [`Keyspace::merging`] does
//! both for programs that know what several values come to; the example `cart` is one.
//!
//! [`OutcomeUnknown`]: ClientError::OutcomeUnknown
//!
//! | module | what it holds |
//! |---|---|
//! | `client` | [`Client`], [`Keyspace`] and the calls |
//! | `hosts` | the hosts, and what is known of them |
//! | `listing` | [`Listing`]: pages that go on at another host |
//! | `siblings` | all values of a key with a context, and [`Merging`] |
//! | `verdict` | what a failed call means for what is done next |
//! | `error` | [`ClientError`] |

mod client;
mod error;
mod hosts;
mod listing;
mod siblings;
mod verdict;

pub use client::{Client, Keyspace, Settings};
pub use error::ClientError;
pub use listing::{Entry, Listing, Scan};
pub use quorate_api::v1;
pub use siblings::Merging;
