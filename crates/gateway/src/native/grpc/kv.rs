//! The service `Kv`.

use super::super::scan::Listing;
use super::super::service::{Asking, Native};
use super::asking;
use quorate_api::v1::kv_server::Kv;
use quorate_api::v1::scan_response::Part;
use quorate_api::v1::{
    BatchGetRequest, BatchGetResponse, DeleteRequest, DeleteResponse, GetRequest, GetResponse,
    HowEndedRequest, HowEndedResponse, PutRequest, PutResponse, ScanRequest, ScanResponse,
    TransactRequest, TransactResponse,
};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Kv for Native {
    async fn get(&self, request: Request<GetRequest>) -> Answered<GetResponse> {
        let asking = asking(&request);
        let done = Native::get(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn put(&self, request: Request<PutRequest>) -> Answered<PutResponse> {
        let asking = asking(&request);
        let done = Native::put(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Answered<DeleteResponse> {
        let asking = asking(&request);
        let done = Native::delete(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn batch_get(&self, request: Request<BatchGetRequest>) -> Answered<BatchGetResponse> {
        let asking = asking(&request);
        let done = Native::batch_get(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn transact(&self, request: Request<TransactRequest>) -> Answered<TransactResponse> {
        let asking = asking(&request);
        let done = Native::transact_as_asked(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn how_ended(&self, request: Request<HowEndedRequest>) -> Answered<HowEndedResponse> {
        let asking = asking(&request);
        let done = Native::how_ended(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    type ScanStream = Pages;

    async fn scan(&self, request: Request<ScanRequest>) -> Answered<Pages> {
        let mut asking = asking(&request);
        // A deadline of the call ends the whole stream; each page has its own.
        asking.within = None;
        let listing = Listing::new(self, request.into_inner());
        let listing = listing.map_err(|problem| self.status_of(problem))?;
        Ok(Response::new(Pages::new(self.clone(), listing, asking)))
    }
}

type Step = Pin<Box<dyn Future<Output = (Listing, Asking, Result<Option<Part>, Status>)> + Send>>;

/// A listing as a stream: a page is read when the one before was taken.
pub struct Pages {
    native: Native,
    state: State,
}

enum State {
    Begin(Box<(Listing, Asking)>),
    Rest(Box<(Listing, Asking)>),
    Reading(Step),
    Over,
}

impl Pages {
    fn new(native: Native, listing: Listing, asking: Asking) -> Pages {
        Pages { native, state: State::Begin(Box::new((listing, asking))) }
    }

    fn read(&self, mut listing: Listing, asking: Asking) -> Step {
        let native = self.native.clone();
        Box::pin(async move {
            let page = listing.page(&asking).await;
            let part = page.map(|page| page.map(Part::Page));
            (listing, asking, part.map_err(|problem| native.status_of(problem)))
        })
    }
}

impl Stream for Pages {
    type Item = Result<ScanResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::Begin(rest) => {
                    let part = Some(Part::Promise(rest.0.promise()));
                    self.state = State::Rest(rest);
                    return Poll::Ready(Some(Ok(ScanResponse { part })));
                }
                State::Rest(rest) => self.state = State::Reading(self.read(rest.0, rest.1)),
                State::Reading(mut step) => {
                    let Poll::Ready((listing, asking, read)) = step.as_mut().poll(cx) else {
                        self.state = State::Reading(step);
                        return Poll::Pending;
                    };
                    let Some(part) = read.transpose() else { return Poll::Ready(None) };
                    if part.is_ok() {
                        self.state = State::Rest(Box::new((listing, asking)));
                    }
                    let response = part.map(|part| ScanResponse { part: Some(part) });
                    return Poll::Ready(Some(response));
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }
}
