//! Connections: accepted within bounds, closed when they hold others up.

use super::leaving::{Answers, Leaving, Progress};
use super::meter::{Arriving, BoxError, Budget};
use super::places::{Place, Places};
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::time::MissedTickBehavior;
use tower::ServiceExt;

/// The most requests of one connection in hand.
const STREAMS_MAX: u32 = 128;
/// How many bytes of one request may wait to be read, and of all requests of one connection.
const WINDOW_BYTES: u32 = 256 * 1024;
/// The most bytes of the head of a request over HTTP/2: names, deadlines and the like.
const HEAD_BYTES_MAX: u32 = 16 * 1024;
/// The same over HTTP/1, where a key of full length stands percent-encoded in the head.
const HEAD_1_BYTES_MAX: usize = 256 * 1024;
/// The most bytes of answers that wait in one connection.
const SEND_BYTES_MAX: usize = 256 * 1024;
/// How often an idle connection is asked whether anybody is there, and how long it may take.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_WITHIN: Duration = Duration::from_secs(20);
/// How long a spare connection is kept if it asks nothing.
const SPARE_FOR: Duration = Duration::from_secs(2);
/// How long connections may take to finish when the door closes.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long a door waits for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long the head of a request may take to arrive.
    pub head: Duration,
    /// How long the body of a request may take to arrive.
    pub body: Duration,
    /// How long a request that has arrived may take to be answered; what follows the head of the
    /// answer may take longer. Operations end sooner by themselves: this is for a host that is
    /// stuck.
    pub answer: Duration,
    /// How long a client may take nothing of an answer before its connection is closed.
    pub stalled: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        let [head, body, answer, stalled] = [10, 90, 90, 60].map(Duration::from_secs);
        Patience { head, body, answer, stalled }
    }
}

/// What a door answers with.
#[derive(Clone)]
pub struct App {
    /// Its services.
    pub router: Router,
    /// The answer to a request that did not arrive in time: nothing was done.
    pub late: fn() -> Response<Body>,
    /// The answer to one of this method and path that arrived and was not answered in time:
    /// whatever it asks for may have been done, or be done yet.
    pub unanswered: fn(&Method, &str) -> Response<Body>,
    /// The error of a request's body for which no memory is left.
    pub exhausted: fn() -> BoxError,
    /// The memory for requests and answers.
    pub budget: Arc<Budget>,
    /// How long it waits for its clients.
    pub patience: Patience,
    /// The most connections at once.
    pub connections_max: usize,
    /// What those find that come when there are as many.
    pub spare: Spare,
    /// Whether it speaks HTTP/1 only. Otherwise it speaks HTTP/2 too.
    pub is_http1: bool,
}

/// The connections beyond the most that a door serves. Each is answered one request, so that health
/// and orders get through however many clients there are, and clients are told.
#[derive(Clone, Copy)]
pub struct Spare {
    /// The most of them at once; one more waits until another has closed.
    pub connections_max: usize,
    /// Whether a request for this path is answered all the same.
    pub answers: fn(&str) -> bool,
    /// The answer to all others.
    pub full: fn() -> Response<Body>,
}

/// Serves connections until `stop` changes, then lets those that are open finish for a moment.
///
/// # Errors
/// The listener failed.
pub async fn serve(
    listener: TcpListener,
    app: App,
    mut stop: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let places = Places::new(app.connections_max, app.spare.connections_max);
    let (done, mut all_done) = tokio::sync::mpsc::channel::<Infallible>(1);
    loop {
        tokio::select! {
            accepted = places.accept(&listener) => match accepted {
                Ok((place, stream)) => {
                    let (app, stop, done) = (app.clone(), stop.clone(), done.clone());
                    tokio::spawn(async move {
                        connection(stream, app, stop, place).await;
                        drop(done);
                    });
                }
                // The one who came is gone, or there are too many files: either way not for ever.
                Err(error) => {
                    tracing::debug!(event = "accept_failed", %error);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
            _ = stop.changed() => break,
        }
    }
    drop((listener, done));
    let _ = tokio::time::timeout(FAREWELL, all_done.recv()).await;
    Ok(())
}

async fn connection(stream: TcpStream, app: App, mut stop: watch::Receiver<bool>, place: Place) {
    // Answers are written whole; waiting to gather more would only delay them.
    stream.set_nodelay(true).ok();
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(app.patience.head)
        .max_buf_size(HEAD_1_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_header_list_size(HEAD_BYTES_MAX)
        .max_send_buf_size(SEND_BYTES_MAX)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WITHIN);
    if app.is_http1 {
        builder = builder.http1_only();
    }
    let (answers, answered) = (Arc::new(Answers::default()), Arc::new(Notify::new()));
    let (untaken, over) = (Arc::clone(&answers), Arc::clone(&answered));
    let stalled = app.patience.stalled;
    let (is_spare, asked) = (place.is_spare, Arc::new(AtomicBool::new(false)));
    let is_asked = Arc::clone(&asked);
    let service = service_fn(move |request: Request<Incoming>| {
        asked.store(true, Ordering::Relaxed);
        let (app, answers, answered) = (app.clone(), Arc::clone(&answers), Arc::clone(&answered));
        async move {
            let is_refused = is_spare && !(app.spare.answers)(request.uri().path());
            let response = match is_refused {
                true => Ok((app.spare.full)()),
                false => answer(request, app, &answers).await,
            };
            answered.notify_one();
            response
        }
    });
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let late = tokio::time::sleep(SPARE_FOR);
    tokio::pin!(late);
    let mut look = tokio::time::interval(stalled / 8);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut is_open, mut is_late) = (true, false);
    loop {
        tokio::select! {
            // What the client did wrong is its own business.
            _ = serving.as_mut() => return,
            _ = look.tick() => if untaken.idle() >= stalled {
                return tracing::info!(event = "slow_client", "a client took no answer; closed");
            },
            () = over.notified(), if is_spare && is_open => is_open = false,
            () = late.as_mut(), if is_spare && !is_late => {
                if !is_asked.load(Ordering::Relaxed) {
                    return;
                }
                is_late = true;
            }
            _ = stop.changed(), if is_open => is_open = false,
        }
        if !is_open {
            serving.as_mut().graceful_shutdown();
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    app: App,
    answers: &Answers,
) -> Result<Response<Body>, Infallible> {
    let allowance = app.budget.allowance();
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(Arc::clone(&allowance));
    let (body, arrived) = Arriving::new(body, Arc::clone(&allowance), app.exhausted);
    let (method, uri) = (parts.method.clone(), parts.uri.clone());
    let answered = app.router.oneshot(Request::from_parts(parts, Body::new(body)));
    let late = async {
        if tokio::time::timeout(app.patience.body, arrived).await.is_err() {
            return (app.late)();
        }
        tokio::time::sleep(app.patience.answer).await;
        (app.unanswered)(&method, uri.path())
    };
    let response = tokio::select! {
        biased;
        Ok(response) = answered => response,
        response = late => response,
    };
    let progress = Arc::<Progress>::default();
    answers.add(&progress);
    Ok(response.map(|body| Body::new(Leaving::new(body, allowance, progress))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::Exhausted;
    use axum::routing::{get, post};
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const LONG: usize = 32 * 1024 * 1024;

    async fn long(request: axum::extract::Request) -> Vec<u8> {
        let allowance = request.extensions().get::<Arc<crate::web::Allowance>>();
        allowance.expect("every request has one").take(LONG).expect("there is room");
        vec![0; LONG]
    }

    /// How many bytes fit into any buffer on their way.
    const SHORT: usize = 1_000;

    async fn short(request: axum::extract::Request) -> Vec<u8> {
        let allowance = request.extensions().get::<Arc<crate::web::Allowance>>();
        allowance.expect("every request has one").take(SHORT).expect("there is room");
        vec![0; SHORT]
    }

    /// A door that waits `patience` for everything.
    async fn door(patience: Duration) -> (SocketAddr, Arc<Budget>, watch::Sender<bool>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let budget = Budget::new(2 * LONG);
        // An operation that does not end, begun once its request has arrived.
        let never = |_: axum::body::Bytes| std::future::pending::<()>();
        let app = App {
            router: Router::new()
                .route("/long", get(long))
                .route("/short", get(short))
                .route("/never", post(never)),
            late: || Response::builder().status(408).body(Body::empty()).expect("a status"),
            unanswered: |_, _| {
                Response::builder().status(504).body(Body::empty()).expect("a status")
            },
            exhausted: || Exhausted.into(),
            budget: Arc::clone(&budget),
            patience: Patience {
                head: patience,
                body: patience,
                answer: patience,
                stalled: patience,
            },
            connections_max: 2,
            spare: Spare {
                connections_max: 1,
                answers: |path| path == "/none",
                full: || Response::builder().status(503).body(Body::empty()).expect("a status"),
            },
            is_http1: false,
        };
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(serve(listener, app, stopped));
        (address, budget, stop)
    }

    async fn ask(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("the door is open");
        stream.write_all(text.as_bytes()).await.expect("it is taken");
        stream
    }

    async fn until(is_so: impl Fn() -> bool) {
        let waiting = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), waiting).await.expect("in time");
    }

    async fn rest(mut stream: TcpStream) -> Vec<u8> {
        let mut all = Vec::new();
        // A connection that was cut ends with an error.
        let _ = stream.read_to_end(&mut all).await;
        all
    }

    #[tokio::test]
    async fn a_client_that_takes_no_answer_is_closed_and_its_memory_given_back() {
        let (address, budget, _stop) = door(Duration::from_millis(200)).await;
        let idle = ask(address, "GET /long HTTP/1.1\r\nHost: q\r\n\r\n").await;
        until(|| budget.left() < 2 * LONG).await;
        until(|| budget.left() == 2 * LONG).await;
        assert!(rest(idle).await.len() < LONG, "the rest never comes");
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_of_a_short_answer_over_http2_is_closed_too() {
        let (address, budget, _stop) = door(Duration::from_millis(200)).await;
        let frame = |kind: u8, flags: u8, stream: u8, body: &[u8]| {
            let length = u8::try_from(body.len()).expect("it is short");
            [&[0, 0, length, kind, flags, 0, 0, 0, stream], body].concat()
        };
        // Settings with an initial window of nothing, and a GET whose headers say no more than
        // they must.
        let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
        let headers = frame(1, 5, 1, b"\x82\x86\x04\x06/short\x01\x01q");
        let mut idle = ask(address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        idle.write_all(&[settings, headers].concat()).await.expect("it is taken");
        until(|| budget.left() == 2 * LONG - SHORT).await;
        until(|| budget.left() == 2 * LONG).await;
        drop(rest(idle).await);
    }

    #[tokio::test]
    async fn a_client_that_takes_its_answer_gets_all_of_it() {
        let (address, budget, _stop) = door(Duration::from_secs(60)).await;
        let head = "GET /long HTTP/1.1\r\nHost: q\r\nConnection: close\r\n\r\n";
        assert!(rest(ask(address, head).await).await.len() > LONG);
        until(|| budget.left() == 2 * LONG).await;
    }

    #[tokio::test]
    async fn requests_that_never_end_are_told_so() {
        let (address, _, _stop) = door(Duration::from_millis(200)).await;
        let half = ask(address, "GET /long HTTP/1.1\r\nHos").await;
        let begun = "POST /never HTTP/1.1\r\nHost: q\r\nContent-Length: 9\r\n\r\nabc";
        let begun = ask(address, begun).await;
        assert!(rest(begun).await.starts_with(b"HTTP/1.1 408"));
        drop(rest(half).await);
    }

    #[tokio::test]
    async fn a_request_that_arrived_is_not_said_to_be_undone_when_its_operation_does_not_end() {
        let (address, _, _stop) = door(Duration::from_millis(200)).await;
        let whole = "POST /never HTTP/1.1\r\nHost: q\r\nConnection: close\r\n\
                     Content-Length: 3\r\n\r\nabc";
        assert!(rest(ask(address, whole).await).await.starts_with(b"HTTP/1.1 504"));
    }

    #[tokio::test]
    async fn beyond_the_most_connections_each_is_answered_once_and_only_what_must_be() {
        let (address, _, _stop) = door(Duration::from_secs(60)).await;
        let half = "GET /long HTTP/1.1\r\nHos";
        let (one, other) = (ask(address, half).await, ask(address, half).await);
        for _ in 0..3 {
            let needed = ask(address, "GET /none HTTP/1.1\r\nHost: q\r\n\r\n").await;
            assert!(rest(needed).await.starts_with(b"HTTP/1.1 404"), "it is answered and closed");
            let call = ask(address, "GET /long HTTP/1.1\r\nHost: q\r\n\r\n").await;
            assert!(rest(call).await.starts_with(b"HTTP/1.1 503"));
        }
        // One that says nothing keeps nobody waiting for ever.
        let silent = ask(address, "").await;
        let needed = ask(address, "GET /none HTTP/1.1\r\nHost: q\r\n\r\n").await;
        assert!(rest(needed).await.starts_with(b"HTTP/1.1 404"));
        drop((rest(silent).await, one, other));
        let call = "GET /long HTTP/1.1\r\nHost: q\r\nConnection: close\r\n\r\n";
        let mut served = false;
        while !served {
            served = rest(ask(address, call).await).await.len() > LONG;
        }
    }

    #[tokio::test]
    async fn a_door_that_closes_lets_idle_connections_go() {
        let (address, _, stop) = door(Duration::from_secs(60)).await;
        let mut idle = ask(address, "GET /none HTTP/1.1\r\nHost: q\r\n\r\n").await;
        let mut head = [0; 12];
        idle.read_exact(&mut head).await.expect("an answer");
        assert_eq!(&head, b"HTTP/1.1 404");
        stop.send(true).expect("the door is open");
        drop(rest(idle).await);
    }
}
