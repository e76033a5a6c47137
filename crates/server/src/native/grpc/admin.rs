//! The service `Admin`.

use super::super::service::Native;
use quorate_api::v1::admin_server::Admin;
use quorate_api::v1::{
    KeyspacesRequest, KeyspacesResponse, RingRequest, RingResponse, StatusRequest, StatusResponse,
};
use tonic::{Request, Response, Status};

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Admin for Native {
    async fn keyspaces(&self, _: Request<KeyspacesRequest>) -> Answer<KeyspacesResponse> {
        Ok(Response::new(Native::keyspaces(self)))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Answer<StatusResponse> {
        Ok(Response::new(Native::status(self)))
    }

    async fn ring(&self, _: Request<RingRequest>) -> Answer<RingResponse> {
        let asked = Native::ring(self).await;
        asked.map(Response::new).map_err(|problem| self.status_of(problem))
    }
}
