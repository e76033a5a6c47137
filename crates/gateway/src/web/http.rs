//! One request over one connection: all that a command line needs of HTTP.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The longest answer taken.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a server answered to one request.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// What follows the headers, as UTF-8.
    pub body: String,
}

/// Connects to `HOST:PORT` within the time.
///
/// # Errors
/// No address of that name took the connection in time.
pub fn connect(address: &str, within: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::InvalidInput, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Asks for a path.
///
/// # Errors
/// The connection failed, the time was up, or the answer is no HTTP.
pub fn get(address: &str, path: &str, within: Duration) -> io::Result<HttpAnswer> {
    request("GET", address, path, &[], within)
}

/// Has something done.
///
/// # Errors
/// As [`get`]; what was asked for may have been done.
pub fn post(address: &str, path: &str, within: Duration) -> io::Result<HttpAnswer> {
    request("POST", address, path, &[], within).map_err(|error| match error.kind() {
        // Not as if nobody had been reached.
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe => io::Error::new(ErrorKind::InvalidData, error),
        _ => error,
    })
}

/// Sends a request without a body.
///
/// # Errors
/// As [`get`] and [`post`].
pub fn request(
    method: &str,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
    within: Duration,
) -> io::Result<HttpAnswer> {
    let (status, body) = send(method, address, path, headers, &[], within)?;
    text_of(status, body)
}

/// Sends bytes, and takes bytes.
///
/// # Errors
/// As [`post`].
pub fn exchange(
    address: &str,
    path: &str,
    body: &[u8],
    within: Duration,
) -> io::Result<(u16, Vec<u8>)> {
    send("POST", address, path, &[], body, within)
}

/// An answer whose body is a text.
///
/// # Errors
/// It is none.
pub fn text_of(status: u16, body: Vec<u8>) -> io::Result<HttpAnswer> {
    let body = String::from_utf8(body).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
    Ok(HttpAnswer { status, body })
}

fn send(
    method: &str,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    within: Duration,
) -> io::Result<(u16, Vec<u8>)> {
    let deadline = Instant::now() + within;
    let mut stream = connect(address, within)?;
    stream.set_write_timeout(Some(within))?;
    let more: String = headers.iter().map(|(name, text)| format!("{name}: {text}\r\n")).collect();
    // Hosts answer to their addresses, and may not know every name that leads to them.
    let host = stream.peer_addr()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\
         Connection: close\r\n{more}\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let mut bytes = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            // Who was stopped goes on.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            // A host that ends does so, too.
            Ok(0) if bytes.is_empty() => {
                let text = "the connection was closed without an answer";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
            }
            Ok(0) => return parse(&bytes).ok_or_else(|| ErrorKind::InvalidData.into()),
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
        if bytes.len() > ANSWER_BYTES_MAX {
            return Err(io::Error::new(ErrorKind::InvalidData, "the answer is too long"));
        }
    }
}

/// Why a host refused, in its own words.
#[must_use]
pub fn error_of(answer: &HttpAnswer) -> String {
    let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
    match body["error"].as_str() {
        Some(error) => error.to_owned(),
        None => format!("status {}", answer.status),
    }
}

/// A text as a part of a query: whatever is not a plain letter or digit becomes a percent code.
#[must_use]
pub fn encoded(bytes: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let part = |&byte: &u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    bytes.iter().map(part).collect()
}

/// Reads an answer that ends with the connection. Chunks are not understood: the doors that are
/// asked send none for what is asked.
fn parse(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 4..]);
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    (length? == body.len()).then(|| (status, body.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn queries_carry_any_text() {
        assert_eq!(encoded("a b/ü&~".as_bytes()), "a%20b%2F%C3%BC%26~");
    }

    #[test]
    fn an_end_without_an_answer_is_not_taken_for_another_protocol() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // What was not read makes the system reset the connection.
                for most in [4096, 4096, 1] {
                    let (mut stream, _) = listener.accept().expect("it is asked");
                    let _ = stream.read(&mut vec![0; most]).expect("a request");
                }
            });
            let within = Duration::from_secs(60);
            let read = get(&address, "/status", within).expect_err("nothing is answered");
            assert_eq!(read.kind(), ErrorKind::UnexpectedEof);
            for _ in 0..2 {
                let order = post(&address, "/control/drain", within).expect_err("nor now");
                assert_eq!(order.kind(), ErrorKind::InvalidData, "it may have been carried out");
            }
        });
    }

    #[test]
    fn whole_answers_are_read_and_torn_ones_refused() {
        let whole = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nno\n";
        assert_eq!(parse(whole), Some((503, b"no\n".to_vec())));
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end]), None, "{end} bytes");
        }
        assert_eq!(parse(b"SSH-2.0-x\r\n\r\n"), None);
        assert!(text_of(200, vec![0xff]).is_err());
    }
}
