//! A client of the RESP door that waits for each answer, and one that watches over others' harm.

use bytes::BytesMut;
use quorate_doors::resp::client::{ReplyParser, RespReply, write_command};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// One connection.
pub struct Client {
    door: String,
    stream: TcpStream,
    parser: ReplyParser,
    input: BytesMut,
}

impl Client {
    /// Connects; reads and writes then give up after `patience`.
    pub fn connect(address: &str, patience: Duration) -> io::Result<Client> {
        let door = address.to_owned();
        let address: SocketAddr = address.parse().map_err(io::Error::other)?;
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Client { door, stream, parser: ReplyParser::default(), input: BytesMut::new() })
    }

    /// Connects, or fails the test.
    pub fn to(address: &str) -> Client {
        // Longer than any request may take.
        Client::connect(address, Duration::from_secs(150))
            .unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Waits for the next reply.
    pub fn reply(&mut self) -> io::Result<RespReply> {
        let mut piece = [0; 16 * 1024];
        loop {
            if let Some(reply) = self.parser.next(&mut self.input).map_err(io::Error::other)? {
                return Ok(reply);
            }
            match self.stream.read(&mut piece)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self.input.extend_from_slice(&piece[..count]),
            }
        }
    }

    /// Sends a command and waits for its reply.
    pub fn ask(&mut self, args: &[&[u8]]) -> io::Result<RespReply> {
        let mut out = BytesMut::new();
        write_command(&mut out, args);
        self.send(&out)?;
        self.reply()
    }

    /// Sends a command; its reply as text, if that is a short text or an error.
    pub fn told(&mut self, args: &[&[u8]]) -> String {
        let reply = self.ask(args).unwrap_or_else(|error| {
            let (door, name) = (&self.door, String::from_utf8_lossy(args[0]));
            panic!("no answer to {name} at {door}: {error}; {}", super::cluster::state_of(door))
        });
        let bytes = reply.as_bytes().unwrap_or_else(|| panic!("{reply:?}"));
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// What else comes until the host closes the connection, whatever way it does.
    pub fn rest(mut self) -> Vec<u8> {
        let mut all = self.input.to_vec();
        let mut piece = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return all,
                Ok(count) => all.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A host that closes without having read everything resets the connection.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return all,
                Err(error) => panic!("the host did not close: {error}"),
            }
        }
    }

    /// The connection itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }
}

impl Client {
    /// Asks again while too few replicas can be reached, as on a machine that is too busy for their
    /// pings: such a refusal promises that nothing was changed.
    pub fn told_at_last(&mut self, args: &[&[u8]]) -> String {
        let mut told = self.told(args);
        super::cluster::until("a quorum answers", || {
            if told.starts_with("NOQUORUM") {
                told = self.told(args);
            }
            !told.starts_with("NOQUORUM")
        });
        told
    }
}

/// Runs `harm` while a client of each door sets and gets; each must be served all the time, and at
/// least 20 times before and after the harm.
pub fn beside_bystanders<T>(doors: &[String], harm: impl FnOnce() -> T) -> T {
    const ENOUGH: usize = 20;
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    let served: Vec<AtomicUsize> = doors.iter().map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        // Also when the harm panics, so that the scope ends.
        let stop = Stop(&is_over);
        let bystander = |(door, served): (&String, &AtomicUsize)| {
            let mut client = Client::to(door);
            let key = format!("bystander of {door}").into_bytes();
            while !is_over.load(Ordering::Relaxed) {
                let round = served.fetch_add(1, Ordering::Relaxed).to_string();
                let set = client.told_at_last(&[b"SET", &key, round.as_bytes()]);
                assert_eq!(set, "OK", "{door}");
                assert_eq!(client.told_at_last(&[b"GET", &key]), round, "{door}");
            }
        };
        let pairs = doors.iter().zip(&served);
        let begin = |(door, served)| (door, served, scope.spawn(move || bystander((door, served))));
        let bystanders: Vec<_> = pairs.map(begin).collect();
        let more = |when: &str| {
            for (door, served, thread) in &bystanders {
                let goal = served.load(Ordering::Relaxed) + ENOUGH;
                super::cluster::until(&format!("the bystander of {door} is served {when}"), || {
                    assert!(!thread.is_finished(), "the bystander of {door} has failed {when}");
                    served.load(Ordering::Relaxed) >= goal
                });
            }
        };
        more("before the harm");
        let result = harm();
        more("after the harm");
        drop(stop);
        result
    })
}
