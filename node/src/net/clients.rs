//! Who is connected.
//!
//! For: `CLIENT LIST`, `KILL`, `PAUSE`, `UNBLOCK`, and the limit of connections.
//! Not here: sockets; a connection keeps its entry up to date and asks it whether it has been killed.
//! Next: `command::client` parses and answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

pub use super::client::{Client, Flag, Unblock, is_valid_name};
use super::monitors::Monitors;
use super::outbox::Limits;
use super::pubsub::Hub;
use super::session::PortKind;
use super::tracking::Tracker;
use crate::env::{Clock, Tick};

/// Text of the refusal when there are too many clients.
pub const TOO_MANY: &str = "ERR max number of clients reached";

/// Which clients are meant. Every given part must hold.
#[derive(Clone, Default, Debug)]
pub struct Filter {
    /// Any of these.
    pub ids: Option<Vec<u64>>,
    /// Of this kind.
    pub kind: Option<ClientType>,
    /// From this address, as it is shown.
    pub address: Option<String>,
    /// To this address, as it is shown.
    pub local: Option<String>,
    /// Not this one.
    pub except: Option<u64>,
}

/// Redis' types of clients. Nodes talk on a port of their own, so there are only two here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientType {
    /// Not one of the others.
    Normal,
    /// Never.
    Master,
    /// Never.
    Replica,
    /// Subscribed to channels.
    PubSub,
}

impl Filter {
    fn admits(&self, client: &Client) -> bool {
        let kind = if client.has_flag(Flag::Subscribed) { ClientType::PubSub } else { ClientType::Normal };
        self.ids.as_ref().is_none_or(|ids| ids.contains(&client.id))
            && self.kind.is_none_or(|wanted| wanted == kind)
            && self.address.as_ref().is_none_or(|wanted| *wanted == client.address.to_string())
            && self.local.as_ref().is_none_or(|wanted| *wanted == client.local.to_string())
            && self.except != Some(client.id)
    }
}

/// Whom a pause stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PauseMode {
    /// Only commands that write.
    Write,
    /// All commands.
    All,
}

/// All client connections of the node. One short lock, taken when clients come, go or are listed.
#[derive(Default)]
pub struct Registry {
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    next_id: AtomicU64,
    pause: Mutex<Option<(Tick, PauseMode)>>,
    /// There may be a pause: looked at for every command.
    has_pause: AtomicBool,
    unpaused: Notify,
    /// What they listen to.
    pub hub: Hub,
    /// What they keep.
    pub tracker: Tracker,
    /// Who watches what comes in.
    pub monitors: Monitors,
}

/// A place in the registry; dropping it gives the place back.
pub struct Place {
    /// The entry.
    pub client: Arc<Client>,
    registry: Arc<Registry>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.registry.clients().remove(&self.client.id);
        self.registry.hub.leave(&self.client);
        self.registry.tracker.end(&self.client);
        self.registry.monitors.leave(&self.client);
    }
}

impl Registry {
    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a connection in, unless there are `maxclients` already: then answer [`TOO_MANY`] and close.
    pub fn enter(
        self: &Arc<Self>,
        address: SocketAddr,
        local: SocketAddr,
        port: PortKind,
        now: Tick,
        maxclients: usize,
    ) -> Option<Place> {
        let mut clients = self.clients();
        if clients.len() >= maxclients {
            return None;
        }
        let id = self.next_id.fetch_add(1, Relaxed) + 1;
        let client = Arc::new(Client::new(id, address, local, port, now));
        clients.insert(id, Arc::clone(&client));
        Some(Place { client, registry: Arc::clone(self) })
    }

    /// Number of connections.
    pub fn len(&self) -> usize {
        self.clients().len()
    }

    /// No one is connected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of connections in a blocking command.
    pub fn blocked(&self) -> usize {
        self.clients().values().filter(|client| client.has_flag(Flag::Blocked)).count()
    }

    /// The client with this id.
    pub fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.clients().get(&id).cloned()
    }

    /// The clients that a filter admits, oldest first.
    pub fn select(&self, filter: &Filter) -> Vec<Arc<Client>> {
        self.clients().values().filter(|client| filter.admits(client)).cloned().collect()
    }

    /// Closes those who have not read for too long what others have to say to them; how many.
    pub fn close_overruns(&self, limits: &Limits, now: Tick) -> usize {
        self.clients().values().filter(|client| client.close_overrun(limits, now)).count()
    }

    /// Asks all connections to close.
    pub fn kill_all(&self) {
        self.clients().values().for_each(|client| client.kill());
    }

    /// Lets all connections look at their state anew.
    pub fn wake_all(&self) {
        self.clients().values().for_each(|client| client.wake());
    }

    /// Stops commands until a moment. A longer or wider pause that runs already is kept.
    pub fn pause(&self, until: Tick, mode: PauseMode, now: Tick) {
        let mut pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        *pause = Some(match pause.take_if(|(end, _)| *end > now) {
            Some((end, PauseMode::All)) => (end.max(until), PauseMode::All),
            Some((end, PauseMode::Write)) => (end.max(until), mode),
            None => (until, mode),
        });
        self.has_pause.store(true, Relaxed);
    }

    /// Ends a pause.
    pub fn unpause(&self) {
        *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.has_pause.store(false, Relaxed);
        self.unpaused.notify_waiters();
    }

    /// Whether a command that writes, or one that does not, has to wait now.
    pub fn holds_back(&self, is_write: bool, now: impl FnOnce() -> Tick) -> bool {
        self.has_pause.load(Relaxed)
            && self.paused(now()).is_some_and(|(_, mode)| is_write || mode == PauseMode::All)
    }

    /// Returns when the pause that holds now is over.
    pub async fn pause_over(&self, clock: &Clock) {
        loop {
            let unpaused = self.unpaused.notified();
            let Some((until, _)) = self.paused(clock.now()) else { return };
            tokio::select! {
                () = unpaused => return,
                () = tokio::time::sleep(until.since(clock.now())) => {}
            }
        }
    }

    /// The pause that holds now, and its end.
    pub fn paused(&self, now: Tick) -> Option<(Tick, PauseMode)> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner).filter(|(end, _)| *end > now)
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::resp::ProtocolVersion;

    use super::*;

    fn second(n: u64) -> Tick {
        Tick(n * 1_000_000_000)
    }

    fn enter(registry: &Arc<Registry>, port: u16, maxclients: usize) -> Option<Place> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let local = SocketAddr::from(([127, 0, 0, 1], 6379));
        registry.enter(address, local, PortKind::Client, second(10), maxclients)
    }

    #[test]
    fn places_are_bounded_and_given_back() {
        let registry = Arc::new(Registry::default());
        let first = enter(&registry, 1, 2).unwrap();
        let second = enter(&registry, 2, 2).unwrap();
        assert!(enter(&registry, 3, 2).is_none());
        drop(first);
        assert_eq!(registry.len(), 1);
        assert_eq!((second.client.id, enter(&registry, 4, 2).unwrap().client.id), (2, 3));
    }

    #[test]
    fn line_has_the_fields_of_redis() {
        let registry = Arc::new(Registry::default());
        let place = enter(&registry, 5000, 9).unwrap();
        place.client.set_name("x");
        place.client.set_library("redis-py");
        place.client.touch(second(12), "client|list");
        place.client.set_version(ProtocolVersion::Resp3);
        place.client.set_buffers(26, 0);
        place.client.set_database(3);
        let line = place.client.line(second(15));
        let memory = size_of::<Client>() + 26;
        assert_eq!(
            line,
            format!(
                "id=1 addr=127.0.0.1:5000 laddr=127.0.0.1:6379 fd=0 name=x age=5 idle=3 flags=N db=3 sub=0 psub=0 \
                 ssub=0 multi=-1 watch=0 qbuf=26 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 \
                 tot-mem={memory} events=r cmd=client|list user=default redir=-1 resp=3 lib-name=redis-py lib-ver="
            )
        );
    }

    #[test]
    fn filters_combine() {
        let registry = Arc::new(Registry::default());
        let places: Vec<Place> = (1..=3).map(|port| enter(&registry, port, 9).unwrap()).collect();
        places[1].client.set_flag(Flag::Subscribed, true);
        let ids = |filter: Filter| registry.select(&filter).iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(ids(Filter::default()), [1, 2, 3]);
        assert_eq!(ids(Filter { kind: Some(ClientType::PubSub), ..Filter::default() }), [2]);
        assert_eq!(ids(Filter { ids: Some(vec![3, 1, 9]), except: Some(1), ..Filter::default() }), [3]);
        assert_eq!(ids(Filter { address: Some("127.0.0.1:3".to_owned()), ..Filter::default() }), [3]);
    }

    #[test]
    fn only_a_blocked_client_is_unblocked() {
        let registry = Arc::new(Registry::default());
        let client = enter(&registry, 1, 9).unwrap().client.clone();
        assert!(!client.unblock(Unblock::Error));
        client.set_flag(Flag::Blocked, true);
        assert!(client.unblock(Unblock::Error));
        assert_eq!((client.take_unblock(), client.take_unblock()), (Some(Unblock::Error), None));
    }

    #[test]
    fn a_pause_is_only_made_longer() {
        let registry = Registry::default();
        registry.pause(second(20), PauseMode::All, second(10));
        registry.pause(second(15), PauseMode::Write, second(11));
        assert_eq!(registry.paused(second(12)), Some((second(20), PauseMode::All)));
        assert!(registry.holds_back(false, || second(12)) && !registry.holds_back(true, || second(21)));
        assert_eq!(registry.paused(second(20)), None);
        registry.unpause();
        assert_eq!(registry.paused(second(12)), None);
    }
}
