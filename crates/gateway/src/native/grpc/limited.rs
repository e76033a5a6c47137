//! `quorate.v1.Kv` with the limit of messages that the keyspaces ask for at the moment.

use super::MESSAGE_SLACK;
use crate::native::Native;
use axum::http::Request;
use quorate_api::v1::kv_server::KvServer;
use quorate_kernel::limits::{KEY_BYTES_MAX, TRANSACTION_BYTES_MAX};
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;

/// The call that takes many keys and values.
const TRANSACT: &str = "/quorate.v1.Kv/Transact";

/// The service of a host. Its limit is looked up for every call, since keyspaces with longer
/// values may come.
#[derive(Clone)]
pub(super) struct Limited(pub Native);

impl NamedService for Limited {
    const NAME: &'static str = KvServer::<Native>::NAME;
}

impl Service<Request<Body>> for Limited {
    type Response = <KvServer<Native> as Service<Request<Body>>>::Response;
    type Error = <KvServer<Native> as Service<Request<Body>>>::Error;
    type Future = <KvServer<Native> as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let content_bytes_max = match request.uri().path() {
            TRANSACT => TRANSACTION_BYTES_MAX,
            _ => self.0.value_bytes_max() + KEY_BYTES_MAX,
        };
        let message_bytes_max = content_bytes_max + MESSAGE_SLACK;
        KvServer::new(self.0.clone())
            .max_decoding_message_size(message_bytes_max)
            .max_encoding_message_size(usize::MAX)
            .call(request)
    }
}
