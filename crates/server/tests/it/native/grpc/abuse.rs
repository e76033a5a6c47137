//! What hostile clients of the gRPC door can do: nothing to anybody else.

use super::{block_on, channel, error, kv, put};
use crate::support::client::{Client, beside_bystanders};
use crate::support::cluster::{Cluster, until};
use bytes::{BufMut, Bytes};
use quorate_api::v1::{Kind, PutRequest, PutResponse, TransactResponse};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// Sends bytes and gives back what comes until the host closes or falls silent.
fn exchange(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("the door is open");
    stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a socket");
    // The host may close before it has read everything.
    let _ = stream.write_all(bytes);
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        all.extend_from_slice(&piece[..count]);
    }
    all
}

#[test]
fn nonsense_and_clients_that_never_end_hurt_nobody() {
    const HALVES: usize = 120;
    const BYTES: usize = 1024 * 1024;
    let cluster = Cluster::start("memory");
    let door = cluster.grpc(1);
    beside_bystanders(&cluster.doors(), || {
        let told = exchange(&door, b"GET / HTTP/1.1\r\nHost: q\r\n\r\n");
        assert!(String::from_utf8_lossy(&told).contains("this door speaks gRPC"), "{told:?}");
        for nonsense in [&b"\0\xff\xfe"[..], b"*1\r\n$4\r\nPING\r\n", &[0xff; 70_000]] {
            exchange(&door, nonsense);
        }
        exchange(&door, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    });
    block_on(async {
        // Requests that arrive but never end: all together are over the budget.
        let mut calls = JoinSet::new();
        let mut senders = Vec::new();
        for _ in 0..HALVES {
            let (sender, receiver) = tokio::sync::mpsc::channel(1);
            let whole = PutRequest { value: Bytes::from(vec![0; BYTES]), ..put("half", "") };
            sender.send(whole).await.expect("there is room");
            senders.push(sender);
            calls.spawn(never_ending(channel(&door).await, receiver));
        }
        let status = calls.join_next().await.expect("some end").expect("no panic");
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        assert_eq!(error(Err::<(), _>(status)).1.kind(), Kind::Overloaded);
        assert!(calls.len() > HALVES / 4, "the others wait");
        let mut resp = Client::to(&cluster.resp(1));
        assert_eq!(resp.told_at_last(&[b"SET", b"meanwhile", b"x"]), "OK");
        let resident = cluster.resident_mib(1);
        assert!(resident < 300, "host 1 takes {resident} MiB");
    });
    until("the door serves again", || {
        block_on(async { kv(&door).await.put(put("after", "x")).await.is_ok() })
    });
}

/// A put whose stream is never ended.
async fn never_ending(channel: Channel, messages: Receiver<PutRequest>) -> Status {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.expect("the door is open");
    let path = PathAndQuery::from_static("/quorate.v1.Kv/Put");
    let codec = tonic_prost::ProstCodec::<PutRequest, PutResponse>::default();
    let stream = ReceiverStream::new(messages);
    let answer = client.client_streaming(Request::new(stream), path, codec).await;
    answer.expect_err("a request that does not end is not done")
}

/// A request whose message is bytes.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = TransactResponse;
    type Encoder = Raw;
    type Decoder = <tonic_prost::ProstCodec<(), TransactResponse> as Codec>::Decoder;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Self::Decoder {
        tonic_prost::ProstCodec::<(), TransactResponse>::default().decoder()
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

/// Each empty item takes two bytes of a message, and fifty times that once it is taken apart.
#[test]
fn lists_that_are_too_long_are_refused_before_they_are_taken_apart() {
    let cluster = Cluster::start("memory");
    let door = cluster.grpc(1);
    block_on(async {
        for (count, path) in [
            (2_000, "/quorate.v1.Kv/Transact"),
            (15_000_000, "/quorate.v1.Kv/Transact"),
            (15_000_000, "/quorate.v1.Tree/Multi"),
        ] {
            let mut client = tonic::client::Grpc::new(channel(&door).await);
            client.ready().await.expect("the door is open");
            let message = Request::new(Bytes::from([0x12, 0].repeat(count)));
            let answer = client.unary(message, PathAndQuery::from_static(path), Raw).await;
            let (code, why) = error(answer);
            assert_eq!((code, why.kind()), (Code::InvalidArgument, Kind::Invalid), "{why:?}");
            assert!(why.field == "items" && why.what.contains("1024"), "{why:?}");
        }
        let resident = cluster.resident_mib(1);
        assert!(resident < 300, "host 1 takes {resident} MiB");
        let mut resp = Client::to(&cluster.resp(1));
        assert_eq!(resp.told_at_last(&[b"SET", b"after", b"x"]), "OK");
    });
}
