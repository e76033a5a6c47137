//! A program that speaks to the cluster door, with a secret or without.

use bytes::BytesMut;
use quorate_host::proof::secret;
use quorate_host::proof::{self, MESSAGE_BYTES, Purpose, Session};
use quorate_store::Secret;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

/// What stands before the first message of either side.
pub const PREFACE: [u8; 5] = *b"QRTE\x04";
/// Magic, version, cluster, node, start, for node, settings, run, and what is known of the other:
/// flags, highest start, start, run and batch seen; the sender's number.
pub const HELLO_BYTES: usize = 86;
/// Where it says what is known of the other.
pub const KNOWN_AT: usize = 57;
/// How long a host may take to say something.
const SOON: Duration = Duration::from_secs(60);

/// The secret of a file.
pub fn secret_of(file: &Path) -> Secret {
    secret::read(file).expect("a file of secrets")[0]
}

/// Waits until the other side closes; whatever it sends on the way is not looked at.
pub fn must_close(mut stream: TcpStream) {
    stream.set_read_timeout(Some(SOON)).expect("a socket");
    let mut piece = [0; 64 * 1024];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Err(error) => panic!("the host did not close: {error}"),
        }
    }
}

/// Sends bytes to a door, which must close.
pub fn send(address: &str, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).expect("the door is open");
    // It may have closed before all of it was sent.
    drop(stream.write_all(bytes));
    must_close(stream);
}

/// A connection to a host whose other end has proven itself.
pub struct Intruder {
    pub stream: TcpStream,
    session: Session,
    /// All that was sent.
    pub sent: Vec<u8>,
}

impl Intruder {
    /// Dials a host and proves to know a secret; none if the host refuses.
    pub fn dial(address: &str, secret: &Secret) -> Option<Intruder> {
        let mut stream = TcpStream::connect(address).expect("the door is open");
        stream.set_read_timeout(Some(SOON)).expect("a socket");
        let (asked, first) = proof::ask(Purpose::Link, secret);
        let sent = [&PREFACE[..], &first].concat();
        stream.write_all(&sent).expect("the host reads");
        let second = message(&mut stream)?;
        let session = asked.answered(&second).expect("a host knows the secret");
        Some(Intruder { stream, session, sent })
    }

    /// Waits in the place of a host until another one dials, and gives it the proof it wants.
    pub fn dialled(listener: &TcpListener, secret: &Secret) -> Intruder {
        let (mut stream, _) = listener.accept().expect("a host dials");
        stream.set_read_timeout(Some(SOON)).expect("a socket");
        let first = message(&mut stream).expect("a host that dials asks for a proof");
        let answer = proof::answer(Purpose::Link, &[*secret], &first);
        let (_, second, session) = answer.expect("it knows the secret");
        let sent = [&PREFACE[..], &second].concat();
        stream.write_all(&sent).expect("the host reads");
        Intruder { stream, session, sent }
    }

    /// Says hello in a record.
    pub fn greet(&mut self, hello: &[u8; HELLO_BYTES], encrypts: bool) {
        let plain = [&hello[..], &[u8::from(encrypts)]].concat();
        let record = self.session.seal(&plain);
        self.sent.extend_from_slice(&record);
        self.stream.write_all(&record).expect("the host reads");
    }

    /// Says something in a record; the host may have closed before it is taken.
    pub fn seal(&mut self, plain: &[u8]) {
        let record = self.session.seal(plain);
        drop(self.stream.write_all(&record));
    }

    /// Takes the host's hello, and whether it wants frames encrypted; none if it closes.
    pub fn greeted(&mut self) -> Option<([u8; HELLO_BYTES], bool)> {
        let plain = self.record()?;
        let (hello, encrypts) = plain.split_first_chunk().expect("a hello and a byte");
        Some((*hello, encrypts == [1]))
    }

    /// What the next record tells; none if the host closes.
    pub fn record(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 2];
        self.stream.read_exact(&mut length).ok()?;
        let mut record = vec![0; usize::from(u16::from_le_bytes(length))];
        self.stream.read_exact(&mut record).ok()?;
        let mut plain = BytesMut::new();
        self.session.open(&record, &mut plain).expect("a record of the host");
        Some(plain.to_vec())
    }
}

/// The other side's message of the proof; none if it closes after its preface.
fn message(stream: &mut TcpStream) -> Option<[u8; MESSAGE_BYTES]> {
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).expect("a host says whose protocol it speaks");
    assert_eq!(preface, PREFACE);
    let mut message = [0; MESSAGE_BYTES];
    stream.read_exact(&mut message).ok().map(|()| message)
}
