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
/// How long the head of a request may take to arrive.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long a request may take to arrive and be answered; what follows the head of the answer may
/// take longer.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);
/// How often an idle connection is asked whether anybody is there, and how long it may take.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_WITHIN: Duration = Duration::from_secs(20);
/// How long a client may take nothing of an answer before its connection is closed.
const STALLED_FOR: Duration = Duration::from_secs(60);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long connections may take to finish when the door closes.
const FAREWELL: Duration = Duration::from_secs(2);

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
        .header_read_timeout(HEAD_WITHIN)
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
    let allowance = app.budget.allowance();
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(Arc::clone(&allowance));
    let body = Body::new(Arriving::new(body, Arc::clone(&allowance), app.exhausted));
    let answered = app.router.oneshot(Request::from_parts(parts, body));
    let response = match tokio::time::timeout(ANSWER_WITHIN, answered).await {
        Ok(Ok(response)) => response,
        Err(_) => (app.late)(),
    };
    let watch = move |progress: &Arc<Progress>| {
        let progress = Arc::downgrade(progress);
        tokio::spawn(async move {
            while let Some(progress) = progress.upgrade() {
                if progress.idle() >= STALLED_FOR {
                    return stalled.notify_one();
                }
                drop(progress);
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
    };
    Ok(response.map(|body| Body::new(Leaving::new(body, allowance, watch))))
}
