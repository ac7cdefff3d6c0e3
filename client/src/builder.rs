//! How a client is set up.
//!
//! For: seeds, deadlines, credentials, names; and the first map.
//! Not here: what a client does (`client`).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::client::Client;
use crate::connection::{Link, LinkSettings};
use crate::error::Error;
use crate::links::Core;
use crate::refresh::{self, Pace, Wanted};
use crate::topology::Topology;

/// Longest life of a request, all attempts together. Longer than a failover with the defaults (about a second).
const REQUEST_DEADLINE: Duration = Duration::from_secs(5);
/// Longest wait for one node by a request that may be asked elsewhere. A healthy node answers in milliseconds.
const ATTEMPT_DEADLINE: Duration = Duration::from_secs(1);
/// Longest time to open a connection.
const CONNECT_DEADLINE: Duration = Duration::from_secs(1);
/// A belt: redirects and failures bring newer maps at once, this finds what nothing else told.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);
/// How far beyond its deadline a request may be before its connection is closed.
const OVERDUE_GRACE: Duration = Duration::from_secs(2);

/// What requests and the refresh worker need to know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) seeds: Vec<String>,
    pub(crate) request_deadline: Duration,
    pub(crate) attempt_deadline: Duration,
    pub(crate) refresh_interval: Duration,
}

/// Sets up a [`Client`]; every setting has a default.
///
/// ```no_run
/// # async fn example() -> Result<(), korum_client::Error> {
/// use std::time::Duration;
///
/// let client = korum_client::ClientBuilder::new(["cache-1:6379", "cache-2:6379"])
///     .request_deadline(Duration::from_secs(2))
///     .connection_name("checkout")
///     .connect()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    settings: Settings,
    links: LinkSettings,
    connect_deadline_total: Duration,
}

impl ClientBuilder {
    /// A builder with the addresses (`host:port`, client or cluster ports) of some nodes. One is enough;
    /// the others are found through it. Names are resolved anew at each connect.
    pub fn new(seeds: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            settings: Settings {
                seeds: seeds.into_iter().map(Into::into).collect(),
                request_deadline: REQUEST_DEADLINE,
                attempt_deadline: ATTEMPT_DEADLINE,
                refresh_interval: REFRESH_INTERVAL,
            },
            links: LinkSettings {
                connect_deadline: CONNECT_DEADLINE,
                overdue_grace: OVERDUE_GRACE,
                credentials: None,
                name: None,
            },
            connect_deadline_total: REQUEST_DEADLINE,
        }
    }

    /// Longest life of a request, all attempts together (default 5 s).
    #[must_use]
    pub fn request_deadline(mut self, deadline: Duration) -> Self {
        self.settings.request_deadline = deadline;
        self
    }

    /// Longest wait for one node by a request that only reads and so may be repeated (default 1 s).
    #[must_use]
    pub fn attempt_deadline(mut self, deadline: Duration) -> Self {
        self.settings.attempt_deadline = deadline;
        self
    }

    /// Longest time to open one connection, handshake included (default 1 s).
    #[must_use]
    pub fn connection_deadline(mut self, deadline: Duration) -> Self {
        self.links.connect_deadline = deadline;
        self
    }

    /// Longest time of [`ClientBuilder::connect`] (default 5 s).
    #[must_use]
    pub fn connect_deadline(mut self, deadline: Duration) -> Self {
        self.connect_deadline_total = deadline;
        self
    }

    /// A connection is closed when a request is this far beyond its deadline and nothing has arrived (default 2 s).
    #[must_use]
    pub fn overdue_grace(mut self, grace: Duration) -> Self {
        self.links.overdue_grace = grace;
        self
    }

    /// How often a newer map is looked for although nothing asks for it (default 10 s).
    #[must_use]
    pub fn refresh_interval(mut self, interval: Duration) -> Self {
        self.settings.refresh_interval = interval;
        self
    }

    /// User and password; the user of a password without a name is `default`.
    #[must_use]
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.links.credentials = Some((user.into(), password.into()));
        self
    }

    /// The name that `CLIENT LIST` shows for the connections.
    #[must_use]
    pub fn connection_name(mut self, name: impl Into<String>) -> Self {
        self.links.name = Some(name.into());
        self
    }

    /// Gets the first map from a seed and starts the refresh worker. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Connect`] when no seed gave a map in time, [`Error::Request`] without a seed.
    pub async fn connect(self) -> Result<Client, Error> {
        if self.settings.seeds.is_empty() {
            return Err(Error::Request(
                "connect needs the address of at least one node, as host:port".into(),
            ));
        }
        let links = Arc::new(self.links);
        let wanted = Arc::new(Wanted::new());
        let first = first_map(&self.settings.seeds, &links, &wanted, self.connect_deadline_total).await?;
        let core = Core::new(self.settings, links, wanted, first);
        Ok(Client::start(Arc::new(core)))
    }
}

async fn first_map(
    seeds: &[String],
    settings: &Arc<LinkSettings>,
    wanted: &Arc<Wanted>,
    patience: Duration,
) -> Result<Topology, Error> {
    let began = Instant::now();
    let deadline = began + patience;
    let links: Vec<Link> =
        seeds.iter().map(|seed| Link::start(seed, settings.clone(), wanted.clone())).collect();
    let mut pace = Pace::default();
    loop {
        let last = match refresh::fetch(links.clone(), None, &mut pace, deadline).await {
            Ok((_, Some(topology))) => return Ok(*topology),
            Ok((link, None)) => format!("{}: the node knows no map yet", link.address()),
            Err(problem) => problem,
        };
        // A cluster that is just starting is worth another look.
        let next = Instant::now() + Duration::from_millis(200);
        if next >= deadline {
            return Err(Error::Connect { seeds: seeds.join(", "), waited: began.elapsed(), last });
        }
        tokio::time::sleep_until(next).await;
    }
}
