//! Connections: accepted within bounds, closed when they hold others up.

use super::meter::{Arriving, BoxError, Budget, Leaving, Progress};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
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
/// How long connections may take to finish when the door closes.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long a door waits for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long the head of a request may take to arrive.
    pub head: Duration,
    /// How long a request may take to arrive and be answered; what follows the head of the answer
    /// may take longer.
    pub answer: Duration,
    /// How long a client may take nothing of an answer before its connection is closed.
    pub stalled: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        let [head, answer, stalled] = [10, 90, 60].map(Duration::from_secs);
        Patience { head, answer, stalled }
    }
}

/// What a door answers with.
#[derive(Clone)]
pub struct App {
    /// Its services.
    pub router: Router,
    /// The answer to a request that did not arrive, or was not answered, in time.
    pub late: fn() -> Response<Body>,
    /// The error of a request's body for which no memory is left.
    pub exhausted: fn() -> BoxError,
    /// The memory for requests and answers.
    pub budget: Arc<Budget>,
    /// How long it waits for its clients.
    pub patience: Patience,
    /// The most connections at once; one more waits until another has closed.
    pub connections_max: usize,
    /// Whether it speaks HTTP/1 only. Otherwise it speaks HTTP/2 too.
    pub is_http1: bool,
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
    let room = Arc::new(Semaphore::new(app.connections_max));
    let (done, mut all_done) = tokio::sync::mpsc::channel::<Infallible>(1);
    loop {
        let permit = Arc::clone(&room).acquire_owned();
        let accepted = async {
            let permit = permit.await.expect("the semaphore is never closed");
            (permit, listener.accept().await)
        };
        tokio::select! {
            (permit, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    let (app, stop, done) = (app.clone(), stop.clone(), done.clone());
                    tokio::spawn(async move {
                        connection(stream, app, stop, permit).await;
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

async fn connection(
    stream: TcpStream,
    app: App,
    mut stop: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
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
    let stalled = Arc::new(Notify::new());
    let noticed = Arc::clone(&stalled);
    let service = service_fn(move |request| answer(request, app.clone(), Arc::clone(&stalled)));
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let mut is_open = true;
    loop {
        tokio::select! {
            // What the client did wrong is its own business.
            _ = serving.as_mut() => return,
            () = noticed.notified() => {
                return tracing::info!(event = "slow_client", "a client took no answer; closed");
            }
            _ = stop.changed(), if is_open => {
                serving.as_mut().graceful_shutdown();
                is_open = false;
            }
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    app: App,
    stalled: Arc<Notify>,
) -> Result<Response<Body>, Infallible> {
    let (allowance, stalled_for) = (app.budget.allowance(), app.patience.stalled);
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(Arc::clone(&allowance));
    let body = Body::new(Arriving::new(body, Arc::clone(&allowance), app.exhausted));
    let answered = app.router.oneshot(Request::from_parts(parts, body));
    let response = match tokio::time::timeout(app.patience.answer, answered).await {
        Ok(Ok(response)) => response,
        Err(_) => (app.late)(),
    };
    let watch = move |progress: &Arc<Progress>| {
        let progress = Arc::downgrade(progress);
        tokio::spawn(async move {
            while let Some(progress) = progress.upgrade() {
                if progress.idle() >= stalled_for {
                    return stalled.notify_one();
                }
                drop(progress);
                tokio::time::sleep(stalled_for / 8).await;
            }
        });
    };
    Ok(response.map(|body| Body::new(Leaving::new(body, allowance, watch))))
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

    /// A door that waits `patience` for everything.
    async fn door(patience: Duration) -> (SocketAddr, Arc<Budget>, watch::Sender<bool>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let budget = Budget::new(2 * LONG);
        let never = || async {
            std::future::pending::<()>().await;
        };
        let app = App {
            router: Router::new().route("/long", get(long)).route("/never", post(never)),
            late: || Response::builder().status(408).body(Body::empty()).expect("a status"),
            exhausted: || Exhausted.into(),
            budget: Arc::clone(&budget),
            patience: Patience { head: patience, answer: patience, stalled: patience },
            connections_max: 2,
            is_http1: true,
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
        // Both places are taken: a third waits until one of them is given up.
        let third = "GET /none HTTP/1.1\r\nHost: q\r\nConnection: close\r\n\r\n";
        let third = ask(address, third).await;
        assert!(rest(begun).await.starts_with(b"HTTP/1.1 408"));
        assert!(rest(third).await.starts_with(b"HTTP/1.1 404"));
        drop(rest(half).await);
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
