//! The hosts, and what is known of them.

use crate::error::ClientError;
use quorate_api::v1::admin_client::AdminClient;
use quorate_api::v1::kv_client::KvClient;
use quorate_api::v1::{Coordinator, RingRequest, RingResponse, StatusRequest, StatusResponse};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// How often a silent connection is asked whether its host is there, and how long it may take.
const PING_EVERY: Duration = Duration::from_secs(5);
const PING_WITHIN: Duration = Duration::from_secs(3);
/// How long a host that could not be reached is not asked first.
const DOUBT: Duration = Duration::from_secs(5);

/// The connection to a host of the cluster, and what is known of it.
#[derive(Debug)]
pub(crate) struct Host {
    channel: Channel,
    known: Mutex<Known>,
}

/// What is known of a host.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Who it was when it last said so.
    coordinator: Option<Coordinator>,
    /// When it could last not be reached, if it has not answered since.
    lost: Option<Instant>,
}

impl Host {
    fn new(address: &str) -> Result<Host, ClientError> {
        let refused = |_| ClientError::Address { address: address.to_owned() };
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(refused)?;
        let is_whole = endpoint.uri().authority().is_some_and(|it| it.port().is_some());
        if !is_whole {
            return Err(ClientError::Address { address: address.to_owned() });
        }
        let endpoint = endpoint
            .connect_timeout(CONNECT_WITHIN)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_WITHIN)
            .tcp_nodelay(true);
        Ok(Host { channel: endpoint.connect_lazy(), known: Mutex::default() })
    }

    /// The connection to it.
    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Who it is, asked if it is not known.
    pub(crate) async fn coordinator(&self, within: Duration) -> Result<Coordinator, Status> {
        let known = self.known().coordinator;
        if let Some(known) = known {
            return Ok(known);
        }
        let told = self.status(within).await?.coordinator;
        told.ok_or_else(|| Status::internal("it did not say who it is"))
    }

    /// How it is, and which keyspaces there are.
    pub(crate) async fn status(&self, within: Duration) -> Result<StatusResponse, Status> {
        let mut admin = AdminClient::of(self);
        let mut request = Request::new(StatusRequest {});
        request.set_timeout(within);
        let asked = tokio::time::timeout(within, admin.status(request)).await;
        let status = asked.map_err(|_| Status::deadline_exceeded("it did not say who it is"))??;
        let status = status.into_inner();
        *self.known() = Known { coordinator: status.coordinator, lost: None };
        Ok(status)
    }

    /// What it believes of the ring.
    pub(crate) async fn ring(&self, within: Duration) -> Result<RingResponse, Status> {
        let mut admin = AdminClient::of(self);
        let mut request = Request::new(RingRequest {});
        request.set_timeout(within);
        let asked = tokio::time::timeout(within, admin.ring(request)).await;
        let ring =
            asked.map_err(|_| Status::deadline_exceeded("it did not tell of the ring"))??;
        Ok(ring.into_inner())
    }

    /// It answered.
    pub(crate) fn is_there(&self) {
        self.known().lost = None;
    }

    /// A connection to it was lost: it may be another start when it is back.
    pub(crate) fn forget(&self) {
        *self.known() = Known { coordinator: None, lost: Some(Instant::now()) };
    }

    /// Whether it could not be reached a moment ago.
    pub(crate) fn is_doubted(&self) -> bool {
        self.known().lost.is_some_and(|lost| lost.elapsed() < DOUBT)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A service that each host has.
pub(crate) trait Service {
    /// That of a host.
    fn of(host: &Host) -> Self;
}

impl Service for KvClient<Channel> {
    fn of(host: &Host) -> Self {
        KvClient::new(host.channel()).max_decoding_message_size(usize::MAX)
    }
}

impl Service for AdminClient<Channel> {
    fn of(host: &Host) -> Self {
        AdminClient::new(host.channel()).max_decoding_message_size(usize::MAX)
    }
}

/// All hosts; each call begins at the one that answered last.
#[derive(Debug)]
pub(crate) struct Hosts {
    all: Vec<Arc<Host>>,
    preferred: AtomicUsize,
}

impl Hosts {
    pub(crate) fn new(addresses: &[impl AsRef<str>]) -> Result<Hosts, ClientError> {
        if addresses.is_empty() {
            return Err(ClientError::Address { address: String::new() });
        }
        let all = addresses.iter().map(|address| Host::new(address.as_ref()).map(Arc::new));
        Ok(Hosts { all: all.collect::<Result<_, _>>()?, preferred: AtomicUsize::new(0) })
    }

    /// The host of a turn alone.
    pub(crate) fn alone(&self, turn: usize) -> Hosts {
        let host = Arc::clone(&self.all[turn % self.all.len()]);
        Hosts { all: vec![host], preferred: AtomicUsize::new(0) }
    }

    /// The host that is asked first.
    pub(crate) fn preferred(&self) -> usize {
        self.preferred.load(Ordering::Relaxed)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// The host of a turn.
    pub(crate) fn at(&self, turn: usize) -> &Host {
        &self.all[turn % self.all.len()]
    }

    /// The host of a turn answered: it is asked first from now on.
    pub(crate) fn prefer(&self, turn: usize) {
        self.preferred.store(turn % self.all.len(), Ordering::Relaxed);
    }
}
