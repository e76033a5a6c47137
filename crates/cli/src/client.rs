//! One connection to a RESP door.

use super::exit::{Code, Failure};
use super::output::Output;
use crate::config::values::Length;
use bytes::BytesMut;
use quorate_doors::resp::client::{ReplyParser, RespReply, write_command};
use quorate_gateway::web::http::connect;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// Where and how a client command asks.
#[derive(Clone, Debug, clap::Args)]
pub struct Target {
    /// The RESP door of any host
    #[arg(
        long,
        env = "QUORATE_ENDPOINT",
        default_value = "127.0.0.1:7413",
        value_name = "ADDRESS"
    )]
    pub endpoint: String,
    /// The keyspace; the first one of the cluster if not given
    #[arg(long, env = "QUORATE_KEYSPACE", value_name = "NAME")]
    pub keyspace: Option<String>,
    /// How long to wait for each answer
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub timeout: Length,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc here would replace the command's own")]
    pub output: Output,
}

/// A connection, with its keyspace selected.
pub struct Client {
    target: Target,
    stream: TcpStream,
    parser: ReplyParser,
    input: BytesMut,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// The host cannot be reached, or has no such keyspace.
    pub fn connect(target: &Target) -> Result<Client, Failure> {
        let failed = |error| Failure::of_connection(&target.endpoint, &error);
        let stream = connect(&target.endpoint, target.timeout.0).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_write_timeout(Some(target.timeout.0)).map_err(failed)?;
        let (parser, input) = (ReplyParser::default(), BytesMut::new());
        let mut client = Client { target: target.clone(), stream, parser, input };
        if let Some(keyspace) = &target.keyspace {
            let selected = client.call(&[b"SELECT", keyspace.as_bytes()]);
            selected.map_err(|failure| match failure.code {
                Code::Failed => Failure::new(Code::NotFound, failure.message),
                _ => failure,
            })?;
        }
        Ok(client)
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    /// The reply is an error, or there is none: what became of a write is unknown then.
    pub fn call(&mut self, args: &[&[u8]]) -> Result<RespReply, Failure> {
        let mut command = BytesMut::new();
        write_command(&mut command, args);
        let sent = self.stream.write_all(&command);
        sent.map_err(|error| Failure::of_connection(&self.target.endpoint, &error))?;
        match self.reply() {
            Ok(reply @ RespReply::Error(_)) => {
                let text = reply.as_bytes().map(|text| String::from_utf8_lossy(text).into_owned());
                Err(Failure::of_reply(&text.unwrap_or_default()))
            }
            Ok(reply) => Ok(reply),
            // The command was sent: that nobody answers does not mean that nothing was changed.
            Err(error) => {
                let message = format!("{}: no answer: {error}", self.target.endpoint);
                Err(Failure::new(Code::Timeout, message))
            }
        }
    }

    fn reply(&mut self) -> std::io::Result<RespReply> {
        let deadline = Instant::now() + self.target.timeout.0;
        let mut piece = vec![0; 64 * 1024];
        loop {
            let parsed = self.parser.next(&mut self.input);
            let parsed = parsed.map_err(|e| std::io::Error::new(ErrorKind::InvalidData, e))?;
            if let Some(reply) = parsed {
                return Ok(reply);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut piece)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self.input.extend_from_slice(&piece[..count]),
            }
        }
    }
}

/// A reply that no correct server gives to the command.
#[must_use]
pub fn unexpected(reply: &RespReply) -> Failure {
    Failure::failed(format!("the host's reply makes no sense here: {reply:?}"))
}
