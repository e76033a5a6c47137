//! A connection to a server of ZooKeeper, over its wire.

use super::Copied;
use crate::exit::{Code, Failure};
use bytes::{Bytes, BytesMut};
use quorate_client::v1::{Acl, NodeKind};
use quorate_doors::zookeeper::client::{self, AUTH_XID, NO_NODE, NodeQuestion, Said, ServerAnswer};
use quorate_kernel::tree::Kind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long the session may be silent: as long as nodes may take to be made here.
const SESSION_TIMEOUT_MS: u32 = 60_000;

/// A connection with a session.
pub struct ZooKeeper {
    address: String,
    stream: TcpStream,
    input: BytesMut,
    xid: i32,
    within: Duration,
}

/// What there is at a path.
pub enum Found {
    /// No node, or none any more.
    Nothing,
    /// A node that ends with its session.
    Ephemeral,
    /// A node, and the names of its children.
    Node(Copied, Vec<String>),
}

impl ZooKeeper {
    pub async fn connect(address: &str, within: Duration) -> Result<ZooKeeper, Failure> {
        let connected = timeout(within, TcpStream::connect(address)).await;
        let connected = connected.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        let stream = connected.map_err(|error| Failure::of_connection(address, &error))?;
        let (address, input) = (address.to_owned(), BytesMut::new());
        let mut zookeeper = ZooKeeper { address, stream, input, xid: 0, within };
        zookeeper.send(&client::connect(SESSION_TIMEOUT_MS)).await?;
        match zookeeper.hear(true).await? {
            Said::Connected { timeout_ms: 1.., .. } => Ok(zookeeper),
            _ => Err(zookeeper.failed("it gives no session")),
        }
    }

    fn failed(&self, what: &str) -> Failure {
        Failure::failed(format!("{}: {what}", self.address))
    }

    async fn send(&mut self, bytes: &Bytes) -> Result<(), Failure> {
        let sent = timeout(self.within, self.stream.write_all(bytes)).await;
        let sent = sent.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        sent.map_err(|error| Failure::of_connection(&self.address, &error))
    }

    /// What the server says next.
    async fn hear(&mut self, is_first: bool) -> Result<Said, Failure> {
        loop {
            let next = client::next(&mut self.input, is_first);
            if let Some(said) = next.map_err(|why| self.failed(&why.to_string()))? {
                return Ok(said);
            }
            let read = timeout(self.within, self.stream.read_buf(&mut self.input)).await;
            let read = read.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
            match read.map_err(|error| Failure::of_connection(&self.address, &error))? {
                0 => {
                    let text = format!("{}: it has closed the connection", self.address);
                    return Err(Failure::new(Code::NoQuorum, text));
                }
                _ => continue,
            }
        }
    }

    /// The answer to the question of a number, which are answered in their order.
    async fn answer(&mut self, xid: i32) -> Result<ServerAnswer, Failure> {
        loop {
            match self.hear(false).await? {
                Said::Answer(answer) if answer.xid == xid => return Ok(answer),
                Said::Event => {}
                _ => return Err(self.failed("it answers what was not asked")),
            }
        }
    }

    /// Shows who asks: a scheme, a colon and a credential.
    pub async fn authenticate(&mut self, shown: &str) -> Result<(), Failure> {
        let Some((scheme, credential)) = shown.split_once(':') else {
            return Err(Failure::new(Code::Usage, "expected SCHEME:CREDENTIAL"));
        };
        let credential = Bytes::copy_from_slice(credential.as_bytes());
        let question = NodeQuestion::Authenticate(scheme.to_owned(), credential);
        self.send(&client::request(AUTH_XID, &question)).await?;
        match self.answer(AUTH_XID).await?.code {
            0 => Ok(()),
            code => Err(self.failed(client::error(code))),
        }
    }

    /// Reads a node: the three questions are on their way together.
    pub async fn read(&mut self, path: &str) -> Result<Found, Failure> {
        let own = || path.to_owned();
        let all =
            [NodeQuestion::Data(own()), NodeQuestion::Acl(own()), NodeQuestion::Children(own())];
        let first = self.xid + 1;
        let mut bytes = BytesMut::new();
        for question in all {
            self.xid += 1;
            bytes.extend_from_slice(&client::request(self.xid, &question));
        }
        self.send(&bytes.freeze()).await?;
        let mut answers = Vec::new();
        for xid in first..=self.xid {
            answers.push(self.answer(xid).await?);
        }
        if answers.iter().any(|answer| answer.code == NO_NODE) {
            return Ok(Found::Nothing);
        }
        if let Some(failed) = answers.iter().find(|answer| answer.code != 0) {
            let hint = if failed.code == -102 { "; --from-auth shows who you are" } else { "" };
            let text = format!("{}: {path}{hint}", client::error(failed.code));
            return Err(self.failed(&text));
        }
        self.found(path, &answers)
    }

    fn found(&self, path: &str, answers: &[ServerAnswer]) -> Result<Found, Failure> {
        let nonsense = |why: client::Nonsense| self.failed(&why.to_string());
        let (data, stat) = answers[0].data().map_err(nonsense)?;
        let (kind, ttl_ms) = match client::kind(stat.ephemeral_owner) {
            Kind::Ephemeral => return Ok(Found::Ephemeral),
            Kind::Persistent => (NodeKind::Persistent, 0),
            Kind::Container => (NodeKind::Container, 0),
            Kind::Ttl(ttl_ms) => (NodeKind::Ttl, ttl_ms),
        };
        let acl = answers[1].acl().map_err(nonsense)?.into_iter();
        let acl =
            acl.map(|it| Acl { permissions: it.permissions, scheme: it.id.scheme, id: it.id.id });
        let names = answers[2].children().map_err(nonsense)?;
        let data = data.map(|data| data.to_vec()).unwrap_or_default();
        let node = Copied { path: path.to_owned(), data, acl: acl.collect(), kind, ttl_ms };
        Ok(Found::Node(node, names))
    }

    /// Ends the session; if that fails it ends by itself.
    pub async fn close(mut self) {
        self.xid += 1;
        let _ = self.send(&client::request(self.xid, &NodeQuestion::Close)).await;
    }
}
