//! The client and its settings.

use crate::admin::Admin;
use crate::error::ClientError;
use crate::hosts::Hosts;
use crate::keyspace::Keyspace;
use crate::routes::Routes;
use std::sync::Arc;
use std::time::Duration;

/// How a client behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a call may take, all tries together.
    pub timeout: Duration,
    /// Whether calls on one key of a linearizable keyspace go to a host that is believed to hold
    /// it, which saves the cluster a message there and back. Which that is, the hosts are asked now
    /// and then; where nobody knows, any host will do.
    pub is_routing: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { timeout: Duration::from_secs(10), is_routing: true }
    }
}

/// A client of a cluster. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) routes: Arc<Routes>,
    pub(crate) settings: Settings,
}

impl Client {
    /// A client of the cluster that these hosts belong to, given as `NAME:PORT` of their gRPC
    /// doors. Nothing is connected yet. Must be called within a runtime.
    ///
    /// # Errors
    /// [`ClientError::Address`].
    pub fn new(addresses: &[impl AsRef<str>]) -> Result<Client, ClientError> {
        Client::with(addresses, Settings::default())
    }

    /// The same with settings.
    ///
    /// # Errors
    /// [`ClientError::Address`].
    pub fn with(addresses: &[impl AsRef<str>], settings: Settings) -> Result<Client, ClientError> {
        let (hosts, routes) = (Hosts::new(addresses)?, Routes::default());
        Ok(Client { hosts: Arc::new(hosts), routes: Arc::new(routes), settings })
    }

    /// A linearizable keyspace. Whether it exists is seen by the first call.
    #[must_use]
    pub fn keyspace(&self, name: &str) -> Keyspace {
        Keyspace::new(self.clone(), name)
    }

    /// What operators ask and order: keyspaces are listed, shown, made, altered and dropped.
    #[must_use]
    pub fn admin(&self) -> Admin {
        Admin::new(self.clone())
    }

    /// Asks the hosts who holds what, which calls on linearizable keyspaces do by themselves, in
    /// the background, when it was not asked recently.
    pub async fn learn_routes(&self) {
        self.routes.learn(&self.hosts).await;
    }

    /// A client of the host of a turn alone.
    pub(crate) fn alone(&self, turn: usize) -> Client {
        Client { hosts: Arc::new(self.hosts.alone(turn)), ..self.clone() }
    }

    /// The host that is believed to hold a key of a linearizable keyspace.
    pub(crate) fn route(&self, keyspace: &str, key: &[u8]) -> Option<usize> {
        if !self.settings.is_routing || self.hosts.count() == 1 {
            return None;
        }
        if self.routes.are_old() {
            let (routes, hosts) = (Arc::clone(&self.routes), Arc::clone(&self.hosts));
            tokio::spawn(async move { routes.learn(&hosts).await });
        }
        self.routes.holder(keyspace, key, |host| !self.hosts.at(host).is_doubted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_are_checked_before_anything_is_sent() {
        for bad in ["", "nowhere", "a b:1", "http://x:1", "x:99999"] {
            let refused = Client::new(&[bad]).expect_err("no address");
            assert_eq!(refused, ClientError::Address { address: bad.to_owned() });
        }
        assert!(Client::new(&Vec::<String>::new()).is_err());
        assert!(Client::new(&["[::1]:7414", "kv.example:7414"]).is_ok());
    }

    #[tokio::test]
    async fn where_nobody_listens_nothing_was_changed() {
        let settings = Settings { timeout: Duration::from_millis(300), ..Settings::default() };
        let client = Client::with(&["127.0.0.1:1"], settings).expect("an address");
        let unreachable = |error: &ClientError| matches!(error, ClientError::Unreachable { .. });
        let keyspace = client.keyspace("default");
        assert!(unreachable(&keyspace.get("k").await.expect_err("nobody")));
        assert!(unreachable(&keyspace.put("k", "v").await.expect_err("nobody")));
        let causal = client.causal("causal");
        assert!(unreachable(&causal.get("k").await.expect_err("nobody")));
        assert!(unreachable(&causal.put("k", "v", "").await.expect_err("nobody")));
    }
}
