//! The service `Admin`.

use super::super::service::Native;
use super::asking;
use quorate_api::v1::admin_server::Admin;
use quorate_api::v1::{
    AlterKeyspaceRequest, AlterKeyspaceResponse, CreateKeyspaceRequest, CreateKeyspaceResponse,
    DropKeyspaceRequest, DropKeyspaceResponse, KeyspacesRequest, KeyspacesResponse,
    ReplacePartitionRequest, ReplacePartitionResponse, RingRequest, RingResponse,
    ShowKeyspaceRequest, ShowKeyspaceResponse, StatusRequest, StatusResponse, WatchRequest,
    WatchResponse,
};
use quorate_kernel::watch::Event;
use std::pin::Pin;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Admin for Native {
    async fn keyspaces(&self, _: Request<KeyspacesRequest>) -> Answered<KeyspacesResponse> {
        Ok(Response::new(Native::keyspaces(self)))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Answered<StatusResponse> {
        Ok(Response::new(Native::status(self)))
    }

    async fn ring(&self, _: Request<RingRequest>) -> Answered<RingResponse> {
        let asked = Native::ring(self).await;
        asked.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn show_keyspace(
        &self,
        request: Request<ShowKeyspaceRequest>,
    ) -> Answered<ShowKeyspaceResponse> {
        let asking = asking(&request);
        let done = Native::show_keyspace(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn create_keyspace(
        &self,
        request: Request<CreateKeyspaceRequest>,
    ) -> Answered<CreateKeyspaceResponse> {
        let asking = asking(&request);
        let done = Native::create_keyspace(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn alter_keyspace(
        &self,
        request: Request<AlterKeyspaceRequest>,
    ) -> Answered<AlterKeyspaceResponse> {
        let asking = asking(&request);
        let done = Native::alter_keyspace(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn drop_keyspace(
        &self,
        request: Request<DropKeyspaceRequest>,
    ) -> Answered<DropKeyspaceResponse> {
        let asking = asking(&request);
        let done = Native::drop_keyspace(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn replace_partition(
        &self,
        request: Request<ReplacePartitionRequest>,
    ) -> Answered<ReplacePartitionResponse> {
        let asking = asking(&request);
        let done = Native::replace_partition(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    type WatchStream = Happening;

    async fn watch(&self, _: Request<WatchRequest>) -> Answered<Happening> {
        let events = self.events().map_err(|problem| self.status_of(problem))?;
        let native = self.clone();
        let told = events.map(move |next| match next {
            Ok(event) => Ok(told(event)),
            Err(problem) => Err(native.status_of(problem)),
        });
        Ok(Response::new(Box::pin(told)))
    }
}

/// What happens, as a stream of messages.
type Happening = Pin<Box<dyn Stream<Item = Result<WatchResponse, Status>> + Send>>;

fn told(event: Event) -> WatchResponse {
    let told = WatchResponse { event: event.word(), ..WatchResponse::default() };
    match event {
        Event::Current => told,
        Event::Keyspace { name, engine, .. } => WatchResponse { keyspace: name, engine, ..told },
        Event::Host { node, address, .. } => WatchResponse { node: node.0, address, ..told },
        // Of a cluster nobody is told of sessions.
        Event::Session(_) => told,
    }
}
