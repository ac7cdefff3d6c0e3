//! What users hold.
//!
//! For: [`Client`] and its general methods; the typed ones stand in `command`, one family a file.
//! Next: `execute` carries requests out.

use std::sync::Arc;

use korum_protocol::id::Epoch;
use korum_protocol::resp::decode::Reply;
use tokio::task::AbortHandle;

use crate::builder::ClientBuilder;
use crate::error::Error;
use crate::links::Core;
use crate::refresh;
use crate::reply::FromReply;
use crate::request::Request;

/// A client of one cluster. Cheap to clone and to share between tasks; one per process is the rule:
/// all clones share one connection per node, and requests of many tasks travel together.
///
/// Dropping a future that waits for an answer is safe: a request that was not sent yet is not sent; one that was
/// sent may be executed.
#[derive(Clone, Debug)]
pub struct Client {
    owner: Arc<Owner>,
}

impl Client {
    /// Connects with the defaults of [`ClientBuilder`]. `seeds` are `host:port` of client or cluster ports.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub async fn connect(seeds: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, Error> {
        ClientBuilder::new(seeds).connect().await
    }

    pub(crate) fn start(core: Arc<Core>) -> Self {
        let worker = tokio::spawn(refresh::run(core.clone())).abort_handle();
        Self { owner: Arc::new(Owner { core, worker }) }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.owner.core
    }

    /// Any command, as its name and arguments; its keys are found through the command table.
    /// A command without keys goes to any node, which answers for the whole cluster where Redis' meaning allows it.
    ///
    /// # Errors
    /// [`Error::Server`] for an error reply, see [`Error`] for the others.
    pub async fn command<A: AsRef<[u8]>>(&self, args: &[A]) -> Result<Reply, Error> {
        self.core().execute(Request::new(args)?).await
    }

    /// Any command, its answer converted.
    ///
    /// # Errors
    /// As [`Client::command`], and [`Error::UnexpectedReply`] when the answer is of another kind.
    pub async fn query<T: FromReply>(&self, args: &[impl AsRef<[u8]>]) -> Result<T, Error> {
        T::from_reply(self.command(args).await?)
    }

    /// A batch of commands; see [`Pipeline`].
    pub fn pipeline(&self) -> Pipeline<'_> {
        Pipeline { client: self, requests: Vec::new() }
    }

    /// Version of the cluster map that requests are routed by at present.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.core().epoch()
    }

    pub(crate) async fn execute<T: FromReply>(&self, request: Request) -> Result<T, Error> {
        T::from_reply(self.core().execute(request).await?)
    }
}

/// Commands that are sent together: one write per node, answers in the order of the commands.
///
/// It is no transaction: each command succeeds or fails by itself. Commands on one slot are executed in the order in
/// which they stand here, also when a part has to be repeated; across slots there is no order, and commands without
/// keys have none.
///
/// ```no_run
/// # async fn example(client: korum_client::Client) -> Result<(), korum_client::Error> {
/// let answers = client.pipeline().command(&["INCR", "visits"]).command(&["GET", "motd"]).send().await;
/// for answer in answers {
///     println!("{:?}", answer?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a pipeline does nothing until it is sent"]
pub struct Pipeline<'a> {
    client: &'a Client,
    requests: Vec<Result<Request, Error>>,
}

impl Pipeline<'_> {
    /// Adds a command, as its name and arguments.
    pub fn command<A: AsRef<[u8]>>(mut self, args: &[A]) -> Self {
        self.requests.push(Request::new(args));
        self
    }

    /// Number of commands so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// True if there is no command yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Sends all and waits for all; one answer or error for each command, in order.
    /// A command that cannot be sent as it is fails alone.
    pub async fn send(self) -> Vec<Result<Reply, Error>> {
        let mut sendable = Vec::with_capacity(self.requests.len());
        let places: Vec<Option<Error>> = self
            .requests
            .into_iter()
            .map(|request| match request {
                Ok(request) => {
                    sendable.push(request);
                    None
                }
                Err(error) => Some(error),
            })
            .collect();
        let mut answers = self.client.core().execute_all(sendable).await.into_iter();
        let merged = places.into_iter().map(|refused| match refused {
            Some(error) => Err(error),
            None => answers.next().expect("each request that was sent has one answer"),
        });
        merged.collect()
    }
}

/// Shared by all clones of a client; ends the refresh worker with the last of them.
#[derive(Debug)]
struct Owner {
    core: Arc<Core>,
    worker: AbortHandle,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.worker.abort();
    }
}
