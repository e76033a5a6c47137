//! Listings: pages that go on at another host.

use crate::calls;
use crate::client::Client;
use crate::error::ClientError;
use bytes::Bytes;
use quorate_api::v1::scan_response::Part;
use quorate_api::v1::{Reading, ScanPage, ScanRequest};
use tonic::{Request, Response, Status};

/// What is to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Only keys from this one on; the keyspace must keep its keys in order.
    pub from: Option<Bytes>,
    /// Only keys before this one; the keyspace must keep its keys in order.
    pub to: Option<Bytes>,
    /// Whether values are read too, each by itself after its key was listed.
    pub with_values: bool,
    /// About how many keys a page has; 0 is what the host takes.
    pub page_keys: u32,
}

/// One key of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T = Bytes> {
    /// As the client gave it that wrote under it.
    pub key: Bytes,
    /// Its value, or its siblings, if values were asked for; a value only if the key still had one
    /// when it was read.
    pub value: Option<T>,
}

/// How a listing takes what was read of a key.
type Take<T> = fn(Option<Reading>) -> Result<Option<T>, ClientError>;

/// A listing under way. A page that cannot be read at one host is read at another; no key comes
/// twice for it.
#[derive(Debug)]
pub struct Listing<T = Bytes> {
    client: Client,
    request: ScanRequest,
    take: Take<T>,
    is_over: bool,
}

impl<T> Listing<T> {
    pub(crate) fn new(client: Client, keyspace: &str, scan: Scan, take: Take<T>) -> Listing<T> {
        let request = ScanRequest {
            keyspace: keyspace.to_owned(),
            cursor: Bytes::new(),
            from: scan.from,
            to: scan.to,
            limit: 0,
            page_keys: scan.page_keys,
            with_values: scan.with_values,
            timeout_ms: 0,
        };
        Listing { client, request, take, is_over: false }
    }

    /// The next page, which may be empty; `None` behind the last.
    ///
    /// # Errors
    /// It could not be read. Asked again, the listing goes on with it.
    pub async fn page(&mut self) -> Result<Option<Vec<Entry<T>>>, ClientError> {
        if self.is_over {
            return Ok(None);
        }
        let page = calls::read(&self.client, None, self.request.clone(), first_page).await?;
        self.is_over = page.cursor.is_empty();
        self.request.cursor = page.cursor;
        let entry = |entry: quorate_api::v1::Entry| {
            let is_read = self.request.with_values;
            let read = if is_read { (self.take)(entry.reading)? } else { None };
            Ok(Entry { key: entry.key, value: read })
        };
        page.entries.into_iter().map(entry).collect::<Result<_, _>>().map(Some)
    }

    /// All pages that are left.
    ///
    /// # Errors
    /// One could not be read.
    pub async fn all(mut self) -> Result<Vec<Entry<T>>, ClientError> {
        let mut all = Vec::new();
        while let Some(page) = self.page().await? {
            all.extend(page);
        }
        Ok(all)
    }
}

/// The first page of a stream, which is then left: the next one may be another host's.
async fn first_page(
    mut kv: calls::Kv,
    request: Request<ScanRequest>,
) -> Result<Response<ScanPage>, Status> {
    let mut stream = kv.scan(request).await?.into_inner();
    while let Some(message) = stream.message().await? {
        if let Some(Part::Page(page)) = message.part {
            return Ok(Response::new(page));
        }
    }
    Err(Status::internal("a listing without a page"))
}
