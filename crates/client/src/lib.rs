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
//! Reads are asked of one host after another until one answers. A write on a linearizable or a
//! serializable keyspace, and a transaction, is sent to one host; if the answer is lost, it is sent
//! again to the same host under the same request id, so that it is done once, and if that host
//! cannot tell what became of it, the caller is told [`OutcomeUnknown`] rather than that it failed.
//! Calls begin at a host that is believed to hold the key.
//!
//! Causal keyspaces keep concurrent values side by side. [`Causal`] reads them with a context,
//! merges them by a callback, and sends writes on to other hosts:
//!
//! ```no_run
//! # async fn f(client: quorate_client::Client) -> Result<(), quorate_client::ClientError> {
//! let carts = client.causal("causal");
//! let union = |values: &[bytes::Bytes]| Some(values.concat().into());
//! carts.update("cart", union).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Where the keyspace's engine has expiry, keys may end by themselves; a lock that is free again
//! although its holder died:
//!
//! ```no_run
//! # async fn f(keyspace: quorate_client::Keyspace) -> Result<(), quorate_client::ClientError> {
//! use quorate_client::{Expiry, ItemOutcome, Transaction};
//! use std::time::Duration;
//!
//! let soon = Expiry::After(Duration::from_secs(30));
//! let lock = Transaction::new().put_if_expiring("lock", false, "worker-1", soon);
//! let is_mine = keyspace.transact(lock).await? == [ItemOutcome::Done];
//! # Ok(())
//! # }
//! ```
//!
//! [`Admin`] lists, shows, makes, alters and drops keyspaces:
//!
//! ```no_run
//! # async fn f(client: quorate_client::Client) -> Result<(), quorate_client::ClientError> {
//! let admin = client.admin();
//! admin.create("sessions", "linearizable", &[("replicas", "5"), ("value", "1MiB")]).await?;
//! admin.alter("sessions", &[("replicas", "3")]).await?;
//! admin.drop("sessions").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Keyspaces whose engine has trees are trees of nodes, whose clients may have sessions:
//!
//! ```no_run
//! # async fn f(client: quorate_client::Client) -> Result<(), quorate_client::ClientError> {
//! use quorate_client::v1::{NewNode, NodeKind};
//!
//! let session = client.tree("coordination").open(std::time::Duration::from_secs(10)).await?;
//! let path = String::from("/leader");
//! let node = NewNode { path, kind: NodeKind::Ephemeral.into(), ..NewNode::default() };
//! let leads = session.tree().create(node).await.is_ok();
//! # Ok(())
//! # }
//! ```
//!
//! [`OutcomeUnknown`]: ClientError::OutcomeUnknown
//!
//! | module | what it holds |
//! |---|---|
//! | `client` | [`Client`] and [`Settings`] |
//! | `keyspace`, `causal` | [`Keyspace`] and [`Causal`]: the calls; [`Merging`]: siblings that come to one value |
//! | `transaction` | [`Transaction`]: several keys at one moment, or nothing |
//! | `expiry` | [`Expiry`] and [`Lifetime`]: when keys expire |
//! | `admin` | [`Admin`]: keyspaces come, change and go |
//! | `tree` | [`Tree`] and [`TreeSession`]: nodes at paths, and what ends with a session |
//! | `calls` | how a call is made until it is done, refused, or nobody can say |
//! | `tries` | at which host, and for how long |
//! | `hosts` | the hosts, and what is known of them |
//! | `routes` | who is believed to hold what |
//! | `seen` | the largest token of a receipt |
//! | `listing` | [`Listing`]: pages that go on at another host |
//! | `watch` | [`Events`]: what happens to keyspaces and hosts |
//! | `verdict` | what a failed call means for what is done next |
//! | `error` | [`ClientError`] |

mod admin;
mod calls;
mod causal;
mod client;
mod error;
mod expiry;
mod hosts;
mod keyspace;
mod listing;
mod routes;
mod seen;
mod transaction;
mod tree;
mod tries;
mod verdict;
mod watch;

pub use admin::Admin;
pub use causal::{Causal, Merging};
pub use client::{Client, Settings};
pub use error::ClientError;
pub use expiry::{Expiry, Lifetime};
pub use keyspace::Keyspace;
pub use listing::{Entry, Listing, Scan};
pub use quorate_api::v1;
pub use transaction::{ItemOutcome, Transaction};
pub use tree::{Node, NodeEvents, Tree, TreeSession};
pub use watch::Events;
