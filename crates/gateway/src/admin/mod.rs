//! The HTTP door: health, metrics and status, for operators and their tools.
//!
//! Health, metrics and status only read [`Shared`] and can be
//! asked while the core thread is stuck: that is when it matters. What only the core thread knows
//! is asked of it through a queue.
//!
//! | module | what it answers |
//! |---|---|
//! | [`health`] | `/livez`, `/readyz`, `/healthz`, `/startupz` |
//! | [`exposition`] | `/metrics` |
//! | [`status`] | `/status` |
//! | `svg` | the ring as a picture |
//! | `operate` | `/ring`, `/ring.svg`, `/explain`, `/control/...`, `/dev/faults` |
//! | `holds` | `/holds` |
//! | `remove` | `/control/remove` |
//! | `keyspaces` | `/keyspaces`, `/control/keyspace/create`, `alter`, `drop`, `replace` |
//! | `join`, `invitation` | `/join`, and what a host that joins is told |
//! | `names` | whom a request may be for |
//! | [`crate::native::http`] | `/v1/...` |

pub mod exposition;
pub mod health;
mod holds;
mod invitation;
mod join;
mod keyspaces;
mod names;
pub(crate) mod operate;
mod remove;
pub mod status;
mod svg;

pub use invitation::Invitation;
pub use names::Names;

use crate::native::http;
use crate::web::{App, Budget, Exhausted, OpenDoor, Patience, Spare};
use axum::Router;
use axum::extract::{Query, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use health::{HealthQuery, Probe};
use quorate_host::Calls;
use quorate_host::metrics::Shared;
use quorate_host::proof::{Secrets, fingerprint};
use quorate_store::Identity;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What the door answers from.
pub struct Door {
    /// What the host tells the outside.
    pub shared: Arc<Shared>,
    /// Who the host is.
    pub identity: Identity,
    /// The names that requests may be for.
    pub names: Names,
    /// The secrets that a host which joins may show to know.
    pub secrets: Arc<Secrets>,
    /// Where the core thread is asked.
    pub calls: Arc<Calls>,
    /// When a lane must have answered.
    pub timeout: Duration,
    /// Whether frames may be dropped and delayed on purpose.
    pub takes_faults: bool,
    /// The most connections at once.
    pub connections_max: usize,
    /// What else is served here.
    pub api: Api,
}

/// The native API as this door serves it.
pub struct Api {
    /// Its routes.
    pub router: Router,
    /// The memory for its requests and answers.
    pub budget_bytes: usize,
}

/// The most connections at once.
pub const CONNECTIONS_MAX: usize = 1_024;
/// The most beyond that: of these only what is not the native API is answered.
pub const CONNECTIONS_SPARE: usize = 32;

/// Opens the door, and runs `beside` on its thread until it is closed.
///
/// # Errors
/// The listener or the thread cannot be had; nothing was started.
pub fn open(
    bind: SocketAddr,
    door: Door,
    beside: impl Future<Output = ()> + Send + 'static,
) -> io::Result<OpenDoor> {
    let budget = Budget::new(door.api.budget_bytes);
    let connections_max = door.connections_max;
    let app = App {
        router: router(door),
        late: http::late,
        unanswered: http::unanswered,
        exhausted: || Exhausted.into(),
        budget,
        patience: Patience::default(),
        connections_max,
        spare: Spare {
            connections_max: CONNECTIONS_SPARE,
            answers: |path| !path.starts_with("/v1/"),
            full: http::full,
        },
        is_http1: true,
    };
    OpenDoor::open("http", bind, app, beside)
}

fn router(mut door: Door) -> Router {
    let api = std::mem::take(&mut door.api.router);
    let names = Arc::new(door.names.clone());
    let health = |probe: Probe| {
        get(move |State(door): State<Arc<Door>>, Query(pairs): Query<Vec<(String, String)>>| {
            let answer = health::answer(probe, &HealthQuery::of(pairs), &door.shared);
            let status = match answer.is_passed {
                Some(true) => StatusCode::OK,
                Some(false) => StatusCode::SERVICE_UNAVAILABLE,
                None => StatusCode::NOT_FOUND,
            };
            std::future::ready((status, answer.text))
        })
    };
    let changes = Router::new()
        .route("/control/drain", post(operate::drain))
        .route("/control/remove", post(remove::remove))
        .route("/control/keyspace/create", post(keyspaces::create))
        .route("/control/keyspace/alter", post(keyspaces::alter))
        .route("/control/keyspace/drop", post(keyspaces::drop))
        .route("/control/keyspace/replace", post(keyspaces::replace))
        .route("/control/shutdown", post(operate::shutdown))
        .route("/join", post(join::join))
        .route("/dev/faults", post(operate::faults))
        .layer(from_fn(operate::no_browsers));
    Router::new()
        .merge(changes)
        .route("/livez", health(Probe::Live))
        .route("/readyz", health(Probe::Ready))
        .route("/healthz", health(Probe::Ready))
        .route("/startupz", health(Probe::Started))
        .route("/metrics", get(metrics))
        .route("/status", get(status_json))
        .route("/ring", get(operate::ring))
        .route("/keyspaces", get(keyspaces::list))
        .route("/ring.svg", get(operate::ring_svg))
        .route("/explain", get(operate::explain))
        .route("/holds", get(holds::holds))
        .fallback(no_path)
        .method_not_allowed_fallback(no_method)
        .with_state(Arc::new(door))
        .merge(api)
        .layer(from_fn_with_state(names, names::check))
}

async fn no_path() -> Response {
    operate::failure(StatusCode::NOT_FOUND, "there is no such path")
}

async fn no_method(method: Method) -> Response {
    let why = format!("{method} is no method of this path");
    operate::failure(StatusCode::METHOD_NOT_ALLOWED, why)
}

async fn metrics(State(door): State<Arc<Door>>) -> Response {
    const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, TEXT)], exposition::render(Arc::clone(&door.shared))).into_response()
}

async fn status_json(State(door): State<Arc<Door>>) -> Response {
    let mut status = status::of(&door.shared);
    let secrets = door.secrets.accepted();
    status["secrets"] = secrets.iter().map(fingerprint).collect();
    let body = format!("{status}\n");
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::http;
    use quorate_host::proof::{Purpose, ask as prove};
    use quorate_host::samples::shared as sample;
    use quorate_kernel::ids::{ClusterId, NodeId};
    use quorate_kernel::wire::VERSION;
    use quorate_store::Secret;

    fn identity() -> Identity {
        Identity {
            cluster: ClusterId(0xc1),
            node: NodeId(1),
            host: 1,
            is_founder: true,
            secret: Secret([7; 32]),
            context_key: None,
            hosts: Vec::new(),
            keyspaces: Vec::new(),
        }
    }

    /// The door of a host without a core thread.
    fn opened() -> OpenDoor {
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let nowhere = std::path::Path::new("/nowhere");
        let secrets = Secrets::of(nowhere, &identity()).expect("no file, so the identity's");
        let (calls, inbox) = quorate_host::calls();
        drop(inbox);
        let door = Door {
            shared: Arc::new(sample()),
            identity: identity(),
            names: Names::new(any.ip(), &[], std::iter::empty()),
            secrets: Arc::new(secrets),
            calls,
            timeout: Duration::from_secs(5),
            takes_faults: false,
            connections_max: CONNECTIONS_MAX,
            api: Api { router: Router::new(), budget_bytes: 1 << 20 },
        };
        open(any, door, async {}).expect("a free port")
    }

    fn get(admin: &OpenDoor, path: &str) -> http::HttpAnswer {
        let within = Duration::from_secs(10);
        http::get(&admin.address().to_string(), path, within).expect("answer")
    }

    #[test]
    fn what_is_not_there_or_badly_said_is_refused_in_json() {
        let admin = opened();
        for (path, status, part) in [
            ("/contorl/drain", 404, "there is no such path"),
            ("/control/drain", 405, "GET is no method of this path"),
            ("/explain", 400, "give the key as key=.."),
            ("/explain?key=%FF", 400, "give it as key_hex"),
            ("/explain?key_hex=zz", 400, "key_hex is not two hexadecimal digits"),
            ("/explain?key=&key_hex=zz", 400, "both key and key_hex"),
        ] {
            let refused = get(&admin, path);
            let why = http::error_of(&refused);
            assert!(refused.status == status && why.contains(part), "{path}: {refused:?}");
        }
    }

    #[test]
    fn every_path_answers_over_a_socket() {
        let admin = opened();
        let ask = |path: &str| get(&admin, path);
        assert_eq!(ask("/livez").status, 200);
        assert_eq!(ask("/startupz").status, 503);
        assert_eq!(ask("/readyz?verbose").status, 503);
        assert_eq!(ask("/readyz?keyspace=none").status, 404);
        assert_eq!(ask("/nothing").status, 404);
        assert!(ask("/metrics").body.contains("quorate_build_info{"));
        let status: serde_json::Value =
            serde_json::from_str(&ask("/status").body).expect("valid JSON");
        assert_eq!(status["host"], 1);
        assert_eq!(ask("/ring").status, 503, "there is no core thread");
        assert_eq!(ask("/explain").status, 400);
        assert_eq!((ask("/holds").status, ask("/holds?node=ff").status), (400, 400));
        assert_eq!(ask("/control/drain").status, 405, "a change is no GET");
        let join = |bytes: [u8; 32], protocol: u8| {
            let (address, path) =
                (admin.address().to_string(), format!("/join?protocol={protocol}"));
            let (_, request) = prove(Purpose::Join, &Secret(bytes));
            let within = Duration::from_secs(10);
            http::exchange(&address, &path, &request, within).expect("answer").0
        };
        assert_eq!(join([8; 32], VERSION), 403, "another cluster's secret");
        assert_eq!(join([7; 32], VERSION + 1), 409, "another protocol");
        assert_eq!(join([7; 32], VERSION), 503, "there is no core thread");
        let change = |path: &str, headers: &[(&str, &str)]| {
            let (address, within) = (admin.address().to_string(), Duration::from_secs(10));
            http::request("POST", &address, path, headers, within).expect("answer").status
        };
        assert_eq!(change("/control/drain", &[]), 400, "of which host is not said");
        assert_eq!(change("/control/remove?node=1", &[]), 503, "there is no core thread");
        assert_eq!(change("/control/shutdown?force=maybe", &[]), 400);
        assert_eq!(change("/control/shutdown", &[]), 503, "there is no core thread");
        assert_eq!(change("/control/remove?node=1", &[("origin", "http://page")]), 403);
        assert_eq!(change("/dev/faults", &[]), 403, "only hosts of dev take faults");
        let misled = |name: &str| {
            let (address, within) = (admin.address().to_string(), Duration::from_secs(10));
            let headers = [("host", name)];
            http::request("GET", &address, "/status", &headers, within).expect("answer").status
        };
        assert_eq!(misled("evil.example"), 421, "a page's name was made to point here");
        assert_eq!(misled("localhost"), 200);
        let address = admin.address();
        drop(admin);
        assert!(std::net::TcpStream::connect(address).is_err(), "the door is closed");
    }
}
