//! The service `Tree`.

use super::super::problem::Problem;
use super::super::service::Native;
use super::asking;
use quorate_api::v1::tree_server::Tree;
use quorate_api::v1::{
    AuthenticateRequest, AuthenticateResponse, CloseSessionRequest, CloseSessionResponse,
    CreateNodeRequest, CreateNodeResponse, DeleteNodeRequest, DeleteNodeResponse,
    GetNodeAclRequest, GetNodeAclResponse, GetNodeRequest, GetNodeResponse, KeepAliveRequest,
    KeepAliveResponse, MultiRequest, MultiResponse, NodeChildrenRequest, NodeChildrenResponse,
    NodeExistsRequest, NodeExistsResponse, OpenSessionRequest, OpenSessionResponse,
    SetNodeAclRequest, SetNodeAclResponse, SetNodeRequest, SetNodeResponse, SyncRequest,
    SyncResponse, WatchNodeRequest, WatchNodeResponse,
};
use std::pin::Pin;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};

type Answered<T> = Result<Response<T>, Status>;
type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Tree for Native {
    async fn create(&self, request: Request<CreateNodeRequest>) -> Answered<CreateNodeResponse> {
        let asking = asking(&request);
        let done = Native::create_node(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn delete(&self, request: Request<DeleteNodeRequest>) -> Answered<DeleteNodeResponse> {
        let asking = asking(&request);
        let done = Native::delete_node(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn exists(&self, request: Request<NodeExistsRequest>) -> Answered<NodeExistsResponse> {
        let asking = asking(&request);
        let done = Native::node_exists(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn get(&self, request: Request<GetNodeRequest>) -> Answered<GetNodeResponse> {
        let asking = asking(&request);
        let done = Native::get_node(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn children(
        &self,
        request: Request<NodeChildrenRequest>,
    ) -> Answered<NodeChildrenResponse> {
        let asking = asking(&request);
        let done = Native::node_children(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn set(&self, request: Request<SetNodeRequest>) -> Answered<SetNodeResponse> {
        let asking = asking(&request);
        let done = Native::set_node(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn get_acl(&self, request: Request<GetNodeAclRequest>) -> Answered<GetNodeAclResponse> {
        let asking = asking(&request);
        let done = Native::get_node_acl(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn set_acl(&self, request: Request<SetNodeAclRequest>) -> Answered<SetNodeAclResponse> {
        let asking = asking(&request);
        let done = Native::set_node_acl(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn multi(&self, request: Request<MultiRequest>) -> Answered<MultiResponse> {
        let asking = asking(&request);
        let done = Native::multi(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn keep_alive(&self, request: Request<KeepAliveRequest>) -> Answered<KeepAliveResponse> {
        let asking = asking(&request);
        let done = Native::keep_alive(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn authenticate(
        &self,
        request: Request<AuthenticateRequest>,
    ) -> Answered<AuthenticateResponse> {
        let asking = asking(&request);
        let done = Native::authenticate(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn sync(&self, request: Request<SyncRequest>) -> Answered<SyncResponse> {
        let asking = asking(&request);
        let done = Native::sync_session(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    async fn close_session(
        &self,
        request: Request<CloseSessionRequest>,
    ) -> Answered<CloseSessionResponse> {
        let asking = asking(&request);
        let done = Native::close_session(self, request.into_inner(), &asking).await;
        done.map(Response::new).map_err(|problem| self.status_of(problem))
    }

    type OpenSessionStream = Streamed<OpenSessionResponse>;

    async fn open_session(
        &self,
        request: Request<OpenSessionRequest>,
    ) -> Answered<Streamed<OpenSessionResponse>> {
        let opened = Native::open_session(self, request.into_inner()).await;
        let opened = opened.map_err(|problem| self.status_of(problem))?;
        Ok(Response::new(self.told(opened)))
    }

    type WatchStream = Streamed<WatchNodeResponse>;

    async fn watch(
        &self,
        request: Request<WatchNodeRequest>,
    ) -> Answered<Streamed<WatchNodeResponse>> {
        let mut asking = asking(&request);
        // A deadline of the call ends the whole stream.
        asking.within = None;
        let changes = self.watch_node(request.into_inner(), &asking).await;
        let changes = changes.map_err(|problem| self.status_of(problem))?;
        Ok(Response::new(self.told(changes)))
    }
}

impl Native {
    /// A stream as gRPC has it.
    fn told<T>(
        &self,
        stream: impl Stream<Item = Result<T, Problem>> + Send + 'static,
    ) -> Streamed<T> {
        let native = self.clone();
        Box::pin(stream.map(move |next| next.map_err(|problem| native.status_of(problem))))
    }
}
