//! What each call does, whichever door it came through.

use super::expiry::Asked;
use super::keyspaces::{Keyspace, Keyspaces};
use super::problem::{self, Problem};
use super::tree::table::Sessions;
use super::{about, map, named};
use crate::web::Allowance;
use bytes::Bytes;
use quorate_api::v1;
use quorate_host::metrics::Shared;
use quorate_host::{Call, CallEnd, Calls, Named, OperatorReply, OperatorRequest, wall};
use quorate_kernel::ids::Incarnation;
use quorate_kernel::operation::{Operation, Outcome};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The most keys of one batch.
pub const BATCH_KEYS_MAX: usize = 1_000;
/// The most bytes of values that the answer to a batch holds.
pub const BATCH_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How many reads of a batch are in hand at once.
const BATCH_WIDTH: usize = 32;
/// The least budget of a door for requests and answers in memory.
const BUDGET_BYTES_MIN: usize = 64 * 1024 * 1024;
/// How much longer than an operation may take a door waits for what the core thread knows.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// The native API on this host.
#[derive(Clone)]
pub struct Native {
    pub(super) shared: Arc<Shared>,
    pub(super) calls: Arc<Calls>,
    /// When an operation must have been answered at the latest.
    timeout: Duration,
    me: v1::Coordinator,
    /// The sessions with trees that its clients have open here.
    pub(super) sessions: Arc<Sessions>,
}

/// What a door knows of a request besides its message.
pub struct Asking {
    /// How long whoever asks still waits, if that was said.
    pub within: Option<Duration>,
    /// The memory that the request and its answer take.
    pub allowance: Arc<Allowance>,
}

impl Native {
    /// The API on a host.
    #[must_use]
    pub fn new(shared: Arc<Shared>, calls: Arc<Calls>, timeout: Duration) -> Native {
        let me = map::coordinator(Incarnation { node: shared.node, start: shared.start });
        Native { shared, calls, timeout, me, sessions: Arc::default() }
    }

    /// The host and its start.
    #[must_use]
    pub fn me(&self) -> v1::Coordinator {
        self.me
    }

    /// When an operation must have been answered at the latest.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The keyspaces at the moment.
    pub(super) fn all(&self) -> Keyspaces {
        Keyspaces(self.calls.keyspaces())
    }

    /// The keyspace that has this name at the moment.
    pub(super) fn find(&self, name: &str) -> Result<Arc<Keyspace>, Problem> {
        self.all().find(name).map(Arc::clone)
    }

    /// The longest value that any keyspace takes.
    #[must_use]
    pub fn value_bytes_max(&self) -> usize {
        self.all().value_bytes_max()
    }

    /// The memory that a door takes for requests and answers: room for some of the longest values.
    #[must_use]
    pub fn budget_bytes(&self) -> usize {
        BUDGET_BYTES_MIN.max(4 * self.value_bytes_max())
    }

    /// The longest value that a keyspace takes.
    ///
    /// # Errors
    /// There is no such keyspace.
    pub fn value_bytes_max_of(&self, keyspace: &str) -> Result<usize, Problem> {
        Ok(self.find(keyspace)?.entry.value_bytes_max)
    }

    /// Says who answered.
    pub(super) fn sign(&self, mut problem: Problem) -> Problem {
        problem.coordinator = Some(self.me);
        problem
    }

    /// When an operation must have been answered that may take `timeout_ms`, 0 for what is usual.
    pub(super) fn deadline(&self, timeout_ms: u32, asking: &Asking) -> Instant {
        let wished = match timeout_ms {
            0 => self.timeout,
            timeout_ms => self.timeout.min(Duration::from_millis(u64::from(timeout_ms))),
        };
        // What is left for the way back: whoever waits shall get our answer, not its own guess.
        let within = asking.within.map(|within| within - within / 16);
        Instant::now() + within.map_or(wished, |within| wished.min(within))
    }

    pub(super) async fn call(
        &self,
        keyspace: &Arc<Keyspace>,
        operation: Operation,
        deadline: Instant,
        named: Option<Named>,
    ) -> Result<(Outcome, bool), Problem> {
        let call = Call { keyspace: Arc::clone(keyspace), operation, deadline, named };
        let told: CallEnd = self.calls.call(call).await;
        map::ended(told, self.me)
    }

    /// `Kv.Get`.
    ///
    /// # Errors
    /// The call failed; the problem says what is known of the data, here and below.
    pub async fn get(
        &self,
        request: v1::GetRequest,
        asking: &Asking,
    ) -> Result<v1::GetResponse, Problem> {
        let keyspace = self.find(&request.keyspace)?;
        let v1::GetRequest { key, replicas, place, .. } = request;
        let operation = map::get_at(&keyspace, key, replicas, &place)?;
        let deadline = self.deadline(request.timeout_ms, asking);
        let reading = self.read(&keyspace, operation, deadline, asking).await?;
        Ok(v1::GetResponse { reading: Some(reading), coordinator: Some(self.me) })
    }

    /// Reads one key; its value is counted as memory of the request.
    pub(super) async fn read(
        &self,
        keyspace: &Arc<Keyspace>,
        operation: Operation,
        deadline: Instant,
        asking: &Asking,
    ) -> Result<v1::Reading, Problem> {
        let (outcome, _) = self.call(keyspace, operation, deadline, None).await?;
        let reading = map::reading(keyspace, outcome)?;
        asking.allowance.take(map::size(&reading)).map_err(|_| problem::overloaded())?;
        Ok(reading)
    }

    /// `Kv.Put`.
    ///
    /// # Errors
    /// See [`Native::get`].
    pub async fn put(
        &self,
        request: v1::PutRequest,
        asking: &Asking,
    ) -> Result<v1::PutResponse, Problem> {
        let keyspace = self.find(&request.keyspace)?;
        let options = request.options.unwrap_or_default();
        let v1::PutRequest { key, value, context, expiry, place, .. } = request;
        let asked: Asked = match expiry {
            None => map::put(&keyspace, key, value, context, &options)?.into(),
            Some(_) => map::put_expiring(&keyspace, (key, value), expiry, &context, &options)?,
        };
        let operation = map::at(&keyspace, place, asked.operation)?;
        let asked = Asked { operation, ..asked };
        let (outcome, is_repeated) = self.write(&keyspace, asked, &options, asking).await?;
        let (context, receipt) = map::written(&keyspace, outcome)?;
        Ok(v1::PutResponse { coordinator: Some(self.me), is_repeated, context, receipt })
    }

    /// `Kv.Delete`.
    ///
    /// # Errors
    /// See [`Native::get`].
    pub async fn delete(
        &self,
        request: v1::DeleteRequest,
        asking: &Asking,
    ) -> Result<v1::DeleteResponse, Problem> {
        let keyspace = self.find(&request.keyspace)?;
        let operation = map::delete(&keyspace, request.key, request.context)?;
        let operation = map::at(&keyspace, request.place, operation)?;
        let options = request.options.unwrap_or_default();
        let (outcome, is_repeated) =
            self.write(&keyspace, operation.into(), &options, asking).await?;
        let (existed, context, receipt) = map::deleted(&keyspace, outcome)?;
        let coordinator = Some(self.me);
        Ok(v1::DeleteResponse { coordinator, is_repeated, existed, context, receipt })
    }

    pub(super) async fn write(
        &self,
        keyspace: &Arc<Keyspace>,
        asked: Asked,
        options: &v1::WriteOptions,
        asking: &Asking,
    ) -> Result<(Outcome, bool), Problem> {
        let named = named::named(options, &asked)?;
        let deadline = self.deadline(options.timeout_ms, asking);
        self.call(keyspace, asked.at(wall()), deadline, named).await
    }

    /// `Kv.BatchGet`.
    ///
    /// # Errors
    /// See [`Native::get`].
    pub async fn batch_get(
        &self,
        request: v1::BatchGetRequest,
        asking: &Asking,
    ) -> Result<v1::BatchGetResponse, Problem> {
        let keyspace = self.find(&request.keyspace)?;
        check_count(&request.keys)?;
        let get = |key| map::get_at(&keyspace, key, request.replicas, &request.place);
        let operations: Vec<Operation> =
            request.keys.into_iter().map(get).collect::<Result<_, _>>()?;
        let deadline = self.deadline(request.timeout_ms, asking);
        let limit = BATCH_BYTES_MAX;
        let readings = self.read_all(&keyspace, operations, deadline, limit, asking).await?;
        Ok(v1::BatchGetResponse { readings, coordinator: Some(self.me) })
    }

    /// The same, but a key that cannot be read says so by itself.
    ///
    /// # Errors
    /// Nothing can be read as it was asked, or what was read is too much.
    pub async fn batch_get_each(
        &self,
        request: v1::BatchGetRequest,
        asking: &Asking,
    ) -> Result<Vec<Result<v1::Reading, Problem>>, Problem> {
        let keyspace = self.find(&request.keyspace)?;
        check_count(&request.keys)?;
        map::check_replicas(&keyspace, request.replicas)?;
        map::checked(&keyspace, request.place.clone())?;
        let mut each = Vec::new();
        let mut operations = Vec::new();
        for (index, key) in request.keys.into_iter().enumerate() {
            let asked = map::get_at(&keyspace, key, request.replicas, &request.place);
            each.push(asked.map(|operation| {
                operations.push((index, operation));
                v1::Reading::default()
            }));
        }
        let deadline = self.deadline(request.timeout_ms, asking);
        let take = |index: usize, read| {
            each[index] = read;
            Ok(())
        };
        let (operations, limit) = (operations.into_iter(), BATCH_BYTES_MAX);
        self.reads(&keyspace, operations, deadline, limit, asking, take).await?;
        Ok(each)
    }

    /// Reads keys, some at a time, whose values together have at most `bytes_max` bytes.
    pub(super) async fn read_all(
        &self,
        keyspace: &Arc<Keyspace>,
        operations: Vec<Operation>,
        deadline: Instant,
        bytes_max: usize,
        asking: &Asking,
    ) -> Result<Vec<v1::Reading>, Problem> {
        let mut readings = vec![v1::Reading::default(); operations.len()];
        let operations = operations.into_iter().enumerate();
        let take = |index: usize, read: Result<v1::Reading, Problem>| {
            readings[index] = read?;
            Ok(())
        };
        self.reads(keyspace, operations, deadline, bytes_max, asking, take).await?;
        Ok(readings)
    }

    /// Reads keys, some at a time, and gives what was read of each to `take`, which may end it.
    async fn reads(
        &self,
        keyspace: &Arc<Keyspace>,
        mut left: impl Iterator<Item = (usize, Operation)>,
        deadline: Instant,
        bytes_max: usize,
        asking: &Asking,
        mut take: impl FnMut(usize, Result<v1::Reading, Problem>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut reads = JoinSet::new();
        let mut bytes = 0;
        loop {
            while reads.len() < BATCH_WIDTH
                && let Some((index, operation)) = left.next()
            {
                let (native, keyspace) = (self.clone(), Arc::clone(keyspace));
                reads.spawn(async move {
                    (index, native.call(&keyspace, operation, deadline, None).await)
                });
            }
            let Some(joined) = reads.join_next().await else { return Ok(()) };
            let (index, read) = joined.map_err(|_| problem::mismatch())?;
            let read = read.and_then(|(outcome, _)| map::reading(keyspace, outcome));
            let size = read.as_ref().map_or(0, map::size);
            bytes += size;
            if bytes > bytes_max {
                let right = "ask for fewer keys at a time, or for each by itself";
                return Err(problem::answer_too_large(bytes_max, right));
            }
            asking.allowance.take(size).map_err(|_| problem::overloaded())?;
            take(index, read)?;
        }
    }

    /// `Admin.Keyspaces`.
    #[must_use]
    pub fn keyspaces(&self) -> v1::KeyspacesResponse {
        v1::KeyspacesResponse { keyspaces: about::keyspaces(&self.all()) }
    }

    /// `Admin.Status`.
    #[must_use]
    pub fn status(&self) -> v1::StatusResponse {
        about::status(self.me, &self.all(), &self.shared)
    }

    /// `Admin.Ring`.
    ///
    /// # Errors
    /// The core thread does not answer.
    pub async fn ring(&self) -> Result<v1::RingResponse, Problem> {
        match self.ask(OperatorRequest::Ring, Instant::now() + self.timeout).await? {
            OperatorReply::Ring(report) => Ok(about::ring(&report)),
            _ => Err(problem::mismatch()),
        }
    }
}

fn check_count(keys: &[Bytes]) -> Result<(), Problem> {
    match keys.len() {
        0..=BATCH_KEYS_MAX => Ok(()),
        count => Err(problem::too_many_keys(count, BATCH_KEYS_MAX)),
    }
}
