//! The gRPC door: `quorate.v1`, the health service and reflection.
//!
//! A client that speaks HTTP/1 here is told what this door is.

mod admin;
mod counted;
mod kv;
mod limited;
mod lists;
mod tree;

use self::limited::Limited;
use super::problem::{self, Problem};
use super::room;
use super::service::{Asking, Native};
use crate::admin::health;
use crate::web::{Allowance, App, Budget, OpenDoor, Patience, Spare};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, Version};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::IntoResponse;
use quorate_api::v1::admin_server::AdminServer;
use quorate_api::v1::tree_server::TreeServer;
use quorate_api::{DESCRIPTOR_SET, details};
use quorate_host::metrics::Shared;
use quorate_kernel::limits::TRANSACTION_BYTES_MAX;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tonic::service::Routes;
use tonic::{Extensions, Status};
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};

/// Room in a message for all that is neither key nor value.
const MESSAGE_SLACK: usize = 64 * 1024;
/// The most connections beyond `grpc.clients_max`: of these only health is answered.
pub const CONNECTIONS_SPARE: usize = 8;
/// How often readiness is looked at for the health service.
const HEALTH_EVERY: Duration = Duration::from_millis(250);

/// Opens the door.
///
/// # Errors
/// The listener or the thread cannot be had; nothing was started.
pub fn open(bind: SocketAddr, native: Native, connections_max: usize) -> io::Result<OpenDoor> {
    let (reporter, shared) = (health_reporter(), Arc::clone(&native.shared));
    let budget = Budget::new(native.budget_bytes());
    let app = App {
        router: router(native, reporter.1),
        late: || Status::deadline_exceeded("the request did not arrive in time").into_http(),
        unanswered: |_, _| details::status(&problem::unanswered()).into_http(),
        exhausted: || details::status(&problem::overloaded()).into(),
        budget,
        patience: Patience::default(),
        connections_max,
        spare: Spare {
            connections_max: CONNECTIONS_SPARE,
            answers: |path| path == "/grpc.health.v1.Health/Check",
            full: || details::status(&problem::full()).into_http(),
        },
        is_http1: false,
    };
    OpenDoor::open("grpc", bind, app, report(reporter.0, shared))
}

fn router<H: tonic_health::pb::health_server::Health>(
    native: Native,
    health: tonic_health::pb::health_server::HealthServer<H>,
) -> Router {
    let kv = Limited(native.clone());
    let room = from_fn_with_state(native.clone(), room::make);
    let count = from_fn_with_state(native.clone(), counted::count);
    let tree = TreeServer::new(native.clone())
        .max_decoding_message_size(TRANSACTION_BYTES_MAX + MESSAGE_SLACK)
        .max_encoding_message_size(usize::MAX);
    let admin = AdminServer::new(native).max_decoding_message_size(MESSAGE_SLACK);
    let described = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let reflection = described().build_v1().expect("the schema is whole");
    let reflection_old = described().build_v1alpha().expect("the schema is whole");
    let routes = Routes::new(kv)
        .add_service(tree)
        .add_service(admin)
        .add_service(health)
        .add_service(reflection)
        .add_service(reflection_old);
    routes.into_axum_router().layer(count).layer(room).layer(from_fn(only_http2))
}

/// Tells a client without HTTP/2 what this door is.
async fn only_http2(request: Request<Body>, next: Next) -> Response<Body> {
    if request.version() == Version::HTTP_2 {
        return next.run(request).await;
    }
    let text = "this door speaks gRPC, which needs HTTP/2; the HTTP door has the same under /v1\n";
    (StatusCode::HTTP_VERSION_NOT_SUPPORTED, text).into_response()
}

/// Has the health service tell what `/readyz` does.
async fn report(mut reporter: HealthReporter, shared: Arc<Shared>) {
    let word = |is_ready: bool| match is_ready {
        true => ServingStatus::Serving,
        false => ServingStatus::NotServing,
    };
    let mut told: BTreeMap<String, bool> = BTreeMap::new();
    loop {
        let is_ready = health::is_ready(&shared);
        let services = ["", "quorate.v1.Kv", "quorate.v1.Tree", "quorate.v1.Admin"];
        let mut now: BTreeMap<String, bool> =
            services.into_iter().map(|service| (service.to_owned(), is_ready)).collect();
        for keyspace in shared.keyspaces().iter() {
            now.insert(format!("keyspace/{}", keyspace.name()), keyspace.is_ready());
        }
        for (service, is_ready) in &now {
            if told.get(service) != Some(is_ready) {
                reporter.set_service_status(service, word(*is_ready)).await;
            }
        }
        for dropped in told.keys().filter(|service| !now.contains_key(*service)) {
            reporter.clear_service_status(dropped).await;
        }
        told = now;
        tokio::time::sleep(HEALTH_EVERY).await;
    }
}

/// What is known of a request besides its message.
fn asking<T>(request: &tonic::Request<T>) -> Asking {
    let timeout = request.metadata().get("grpc-timeout").and_then(|text| text.to_str().ok());
    Asking { within: timeout.and_then(parse_timeout), allowance: allowance(request.extensions()) }
}

fn allowance(extensions: &Extensions) -> Arc<Allowance> {
    let found = extensions.get::<Arc<Allowance>>();
    Arc::clone(found.expect("the listener gives every request an allowance"))
}

/// A deadline as gRPC writes it: up to eight digits and a unit.
fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_digit());
    let count: u64 = is_number.then(|| digits.parse().ok())??;
    match unit {
        "H" => Some(Duration::from_secs(count * 3_600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

impl Native {
    fn status_of(&self, problem: Problem) -> Status {
        details::status(&self.sign(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_read_as_grpc_writes_them() {
        assert_eq!(parse_timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse_timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
        assert_eq!(parse_timeout("7u"), Some(Duration::from_micros(7)));
        for bad in ["", "m", "1", "1x", "-1m", "999999999m", "1é", "+1m"] {
            assert_eq!(parse_timeout(bad), None, "{bad}");
        }
    }
}
