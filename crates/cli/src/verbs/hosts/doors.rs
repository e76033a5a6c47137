//! The doors of a host that have threads of their own: HTTP and gRPC.

use crate::config::Config;
use crate::exit::Failure;
use quorate_gateway::admin::{self, Api, Door, Names};
use quorate_gateway::native::{Native, grpc, http};
use quorate_gateway::web::OpenDoor;
use quorate_host::Calls;
use quorate_host::metrics::Shared;
use quorate_host::proof::Secrets;
use quorate_store::Identity;
use std::net::SocketAddr;
use std::sync::Arc;

/// Opens them, with so many connections of HTTP and gRPC at most; `beside` runs on the thread of
/// the HTTP door.
///
/// # Errors
/// One cannot be opened.
pub fn open(
    config: &Config,
    (http_max, grpc_max): (usize, usize),
    identity: &Identity,
    secrets: &Arc<Secrets>,
    shared: &Arc<Shared>,
    calls: Arc<Calls>,
    beside: impl Future<Output = ()> + Send + 'static,
) -> Result<(OpenDoor, OpenDoor), Failure> {
    let timeout = config.limits.request_timeout.0;
    let native = Native::new(Arc::clone(shared), Arc::clone(&calls), timeout);
    let own = identity.hosts.iter().filter(|record| record.node == identity.node);
    let addresses = own.map(|record| &record.address).chain(&config.cluster.advertise.0);
    let names = Names::new(
        config.http.bind.ip(),
        &config.http.hosts.0,
        addresses.map(std::string::String::as_str),
    );
    let door = Door {
        names,
        shared: Arc::clone(shared),
        identity: identity.clone(),
        secrets: Arc::clone(secrets),
        calls,
        timeout,
        takes_faults: config.dev.faults,
        connections_max: http_max,
        api: Api { router: http::router(native.clone()), budget_bytes: native.budget_bytes() },
    };
    let refused = |door: &str, address: SocketAddr| {
        let door = door.to_owned();
        move |error| Failure::failed(format!("the {door} door cannot listen on {address}: {error}"))
    };
    let http = config.http.bind;
    let admin = admin::open(http, door, beside).map_err(refused("http", http))?;
    let bind = config.grpc.bind;
    let grpc = grpc::open(bind, native, grpc_max).map_err(refused("grpc", bind))?;
    Ok((admin, grpc))
}
