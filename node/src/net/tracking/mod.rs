//! Caches of clients: who has to hear that a key has changed.
//!
//! For: the clients of this node that keep what they read (`CLIENT TRACKING`), and the nodes that have such clients.
//! Not here: the commands (`command::tracking`), telling other nodes (`dispatch::track`).
//!
//! Every node tells each node that asked (`interested`) of every key that it changes as a primary; a node knows of
//! which others it can be sure that they do (`confirmed`). While it is not sure of all that are up, or has no lease,
//! what its clients read is said to be outdated right behind the reply. When it ceases to be sure, everything is.

pub mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use bytes::Bytes;
use korum_protocol::id::NodeId;
use korum_protocol::map::View;
use korum_protocol::resp::ProtocolVersion;

use super::clients::{Client, Flag};
use super::outbox::{Frame, Limits};
use crate::env::Tick;
use table::{Ids, Table};

/// Where the messages of a client that speaks RESP2 go: to another client that listens there.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// Under which terms messages wait for clients.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How much may wait.
    pub limits: Limits,
    /// The present moment.
    pub now: Tick,
}

/// A client that keeps what it reads.
struct Tracked {
    client: Arc<Client>,
    redirect: Option<Weak<Client>>,
    /// It has read something since it was told that everything is outdated.
    has_read: bool,
    is_broken: bool,
}

#[derive(Default)]
struct State {
    table: Table,
    clients: BTreeMap<u64, Tracked>,
}

/// The caches of a node's clients, and the nodes that want to be told.
#[derive(Default)]
pub struct Tracker {
    state: Mutex<State>,
    /// Clients of this node that keep what they read.
    count: AtomicUsize,
    /// Other nodes that want to be told.
    interested: RwLock<BTreeSet<NodeId>>,
    /// Somebody has to be told of changes: looked at for every command that writes.
    is_wanted: AtomicBool,
    /// Other nodes that tell this one, and through which of their connections.
    confirmed: Mutex<BTreeMap<NodeId, u64>>,
    /// Connections from other nodes so far.
    connections: AtomicU64,
    /// The present request to be told: what was confirmed for an earlier one means nothing.
    request: AtomicU64,
}

impl Tracker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn confirmed(&self) -> MutexGuard<'_, BTreeMap<NodeId, u64>> {
        self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn want(&self) {
        let interested = !self.interested.read().unwrap_or_else(PoisonError::into_inner).is_empty();
        self.is_wanted.store(interested || self.has_clients(), Ordering::SeqCst);
    }

    /// Somebody has to be told of changes. To be asked under the lock of the partition that changes.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::SeqCst)
    }

    /// Clients of this node keep what they read.
    pub fn has_clients(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// How many, how many keys they may have, how many prefixes they want to be told of.
    pub fn figures(&self) -> [usize; 3] {
        let state = self.state();
        [state.clients.len(), state.table.len(), state.table.prefix_count()]
    }

    /// A client keeps what it reads from now on. True if it is the first of this node: then other nodes have to be asked.
    pub fn begin(&self, client: &Arc<Client>, redirect: Option<&Arc<Client>>, prefixes: &[&[u8]]) -> bool {
        let mut state = self.state();
        let redirect = redirect.map(Arc::downgrade);
        let tracked = Tracked { client: Arc::clone(client), redirect, has_read: true, is_broken: false };
        state.clients.insert(client.id, tracked);
        prefixes.iter().for_each(|prefix| state.table.want(prefix, client.id));
        let is_first = self.count.swap(state.clients.len(), Ordering::SeqCst) == 0;
        if is_first {
            self.request.fetch_add(1, Ordering::SeqCst);
            self.confirmed().clear();
        }
        drop(state);
        self.want();
        client.set_flag(Flag::Tracking, true);
        is_first
    }

    /// A client keeps nothing any more. True if it was the last of this node.
    pub fn end(&self, client: &Client) -> bool {
        if !client.has_flag(Flag::Tracking) {
            return false;
        }
        let mut state = self.state();
        state.clients.remove(&client.id);
        state.table.leave(client.id);
        let is_last = state.clients.is_empty();
        if is_last {
            state.table.forget_all();
        }
        self.count.store(state.clients.len(), Ordering::SeqCst);
        drop(state);
        self.want();
        for flag in [Flag::Tracking, Flag::TrackingBroken, Flag::TrackingAll] {
            client.set_flag(flag, false);
        }
        is_last
    }

    /// A number for a connection from another node.
    pub fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::SeqCst)
    }

    /// The number of the present request to be told.
    pub fn request(&self) -> u64 {
        self.request.load(Ordering::SeqCst)
    }

    /// The prefixes of a client.
    pub fn prefixes(&self, client: &Client) -> Vec<Bytes> {
        self.state().table.prefixes(client.id).cloned().collect()
    }

    /// The client that gets the messages of another one, if that is still there.
    pub fn redirect(&self, client: &Client) -> Option<u64> {
        let state = self.state();
        let redirect = state.clients.get(&client.id)?.redirect.as_ref()?;
        redirect.upgrade().map(|target| target.id)
    }

    /// A client is about to read keys that it may keep. With `is_sure` they are remembered, in a table of at most
    /// `keys_max`; without, or if it `hears_all` anyway and nobody is sure, it is told behind the reply.
    pub fn reads<'k>(
        &self,
        client: &Client,
        keys: impl Iterator<Item = &'k [u8]>,
        is_sure: bool,
        hears_all: bool,
        keys_max: usize,
        terms: &Terms,
    ) {
        let mut state = self.state();
        let State { table, clients } = &mut *state;
        if let Some(tracked) = clients.get_mut(&client.id) {
            tracked.has_read = true;
        }
        for key in keys {
            match (is_sure, hears_all) {
                (true, true) => {}
                (true, false) => table.remember(key, client.id),
                (false, _) => tell(clients, &Ids::from_slice(&[client.id]), Some(key), terms),
            }
        }
        while keys_max > 0
            && table.len() > keys_max
            && let Some((key, ids)) = table.forget_one()
        {
            tell(clients, &ids, Some(&key), terms);
        }
    }

    /// Keys have changed, here or at another node; the client `spared` has changed them and need not be told.
    pub fn changed<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, spared: Option<u64>, terms: &Terms) {
        if !self.has_clients() {
            return;
        }
        let mut state = self.state();
        let State { table, clients } = &mut *state;
        for key in keys {
            let mut ids = table.changed(key);
            ids.retain(|id| Some(*id) != spared);
            tell(clients, &ids, Some(key), terms);
        }
    }

    /// All that one client keeps may be outdated.
    pub fn outdated(&self, client: &Client, terms: &Terms) {
        tell(&mut self.state().clients, &Ids::from_slice(&[client.id]), None, terms);
    }

    /// Everything may be outdated.
    pub fn all_changed(&self, terms: &Terms) {
        if !self.has_clients() {
            return;
        }
        let mut state = self.state();
        let State { table, clients } = &mut *state;
        table.forget_all();
        let ids: Ids = clients.iter().filter(|(_, it)| it.has_read).map(|(id, _)| *id).collect();
        clients.values_mut().for_each(|it| it.has_read = false);
        tell(clients, &ids, None, terms);
    }

    /// Another node wants to be told of changes, or does not any more.
    pub fn set_interested(&self, peer: NodeId, is_interested: bool) {
        let mut interested = self.interested.write().unwrap_or_else(PoisonError::into_inner);
        if is_interested {
            interested.insert(peer);
        } else {
            interested.remove(&peer);
        }
        drop(interested);
        self.want();
    }

    /// The nodes that want to be told.
    pub fn interested(&self) -> Vec<NodeId> {
        self.interested.read().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Another node tells this one from now on, through one of its connections.
    pub fn confirm(&self, peer: NodeId, request: u64, connection: u64) {
        if request == self.request() {
            self.confirmed().insert(peer, connection);
        }
    }

    /// A connection from another node has ended. True if this node was told through it.
    pub fn lose(&self, peer: NodeId, connection: u64) -> bool {
        let mut confirmed = self.confirmed();
        let is_it = confirmed.get(&peer) == Some(&connection);
        if is_it {
            confirmed.remove(&peer);
        }
        is_it
    }

    /// Whether all other nodes that are up tell this one.
    pub fn is_sure(&self, view: &View, me: NodeId) -> bool {
        let confirmed = self.confirmed();
        view.map.nodes.iter().all(|(id, record)| *id == me || !record.is_up() || confirmed.contains_key(id))
    }
}

/// Tells clients that a key, or everything, is outdated.
fn tell(clients: &mut BTreeMap<u64, Tracked>, ids: &Ids, key: Option<&[u8]>, terms: &Terms) {
    for id in ids {
        let Some(tracked) = clients.get_mut(id) else { continue };
        match &tracked.redirect {
            None => {
                if tracked.client.version() == ProtocolVersion::Resp3 {
                    tracked.client.push(pushed(key), &terms.limits, terms.now);
                }
            }
            Some(redirect) => match redirect.upgrade() {
                Some(target) if target.version() == ProtocolVersion::Resp3 => {
                    target.push(pushed(key), &terms.limits, terms.now);
                }
                Some(target) if target.has_flag(Flag::Subscribed) => {
                    target.push(published(key), &terms.limits, terms.now);
                }
                Some(_) => {}
                None => {
                    tracked.client.set_flag(Flag::TrackingBroken, true);
                    let is_news = !std::mem::replace(&mut tracked.is_broken, true);
                    if is_news && tracked.client.version() == ProtocolVersion::Resp3 {
                        let frame = Frame::write(ProtocolVersion::Resp3, |reply| {
                            reply.push(1);
                            reply.bulk(b"tracking-redir-broken");
                        });
                        tracked.client.push(frame, &terms.limits, terms.now);
                    }
                }
            },
        }
    }
}

fn pushed(key: Option<&[u8]>) -> Frame {
    Frame::write(ProtocolVersion::Resp3, |reply| {
        reply.push(2);
        reply.bulk(b"invalidate");
        match key {
            Some(key) => {
                reply.array(1);
                reply.bulk(key);
            }
            None => reply.null(),
        }
    })
}

fn published(key: Option<&[u8]>) -> Frame {
    Frame::write(ProtocolVersion::Resp2, |reply| {
        reply.array(3);
        reply.bulk(b"message");
        reply.bulk(CHANNEL);
        match key {
            Some(key) => {
                reply.array(1);
                reply.bulk(key);
            }
            None => reply.null(),
        }
    })
}
