//! Writes over HTTP whose headers say when they are done, or what is written.

use crate::native::http::{Response, ask};
use crate::native::tree::cluster;

const RAW: &str = "Content-Type: application/octet-stream";

fn at(host: &str, request: &str, header: &str, body: &[u8]) -> Response {
    ask(host, &format!("{request}\n{RAW}{header}"), body)
}

#[test]
fn what_is_not_looked_at_is_refused_and_changes_nothing() {
    let (cluster, _) = cluster();
    let one = cluster.http(1);
    let (key, node) = ("/v1/kv/default/k", "/v1/tree/config/a");
    assert_eq!(at(&one, &format!("PUT {key}"), "", b"old").status, 200);
    assert_eq!(at(&one, &format!("POST {node}"), "", b"old").status, 201);
    for path in [key, node] {
        for method in ["PUT", "DELETE"] {
            for (header, status) in [
                ("\nIf-None-Match: *", 501),
                ("\nIf-Unmodified-Since: Tue, 01 Jan 2030 00:00:00 GMT", 501),
                ("\nContent-Range: bytes 0-2/9", 400),
                ("\nContent-Encoding: gzip", 415),
            ] {
                let refused = at(&one, &format!("{method} {path}"), header, b"new");
                assert_eq!(refused.status, status, "{method} {path} with {header}");
                assert!(!refused.kind().is_empty());
            }
        }
        let raw = ask(&one, &format!("GET {path}\nAccept: application/octet-stream"), b"");
        assert_eq!((raw.status, &raw.body[..]), (200, &b"old"[..]), "{path} has what it had");
    }
    assert_eq!(at(&one, &format!("PUT {key}"), "\nIf-Match: *", b"new").status, 501);
    // A node that must be there is set if it is, and else the condition does not hold.
    assert_eq!(at(&one, &format!("PUT {node}"), "\nIf-Match: *", b"new").status, 200);
    for method in ["PUT", "DELETE"] {
        let absent = at(&one, &format!("{method} {node}/none"), "\nIf-Match: *", b"new");
        assert_eq!((absent.status, absent.kind().as_str()), (412, "no_node"), "{method}");
    }
}
