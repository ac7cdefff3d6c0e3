//! The snapshot that every request reads: a topology and the links to its members.
//!
//! For: swapping in a newer map without anybody waiting; keeping links to nodes that stay, giving up those to
//! nodes that are down.
//! Not here: fetching (`refresh`), the attempts of a request (`execute`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use korum_protocol::id::Epoch;

use crate::builder::Settings;
use crate::connection::{Link, LinkSettings};
use crate::refresh::Wanted;
use crate::topology::{Member, MemberIndex, Topology};

/// The links to one member; none while it is down.
#[derive(Clone, Debug, Default)]
struct MemberLinks {
    direct: Option<Link>,
    whole: Option<Link>,
}

/// One map with its links. Immutable.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) topology: Topology,
    links: Vec<MemberLinks>,
}

impl Snapshot {
    fn new(
        topology: Topology,
        before: Option<&Snapshot>,
        settings: &Arc<LinkSettings>,
        wanted: &Arc<Wanted>,
    ) -> Self {
        let start = |address: &str| Link::start(address, settings.clone(), wanted.clone());
        let links = topology.members().iter().map(|member| {
            if !member.up {
                return MemberLinks::default();
            }
            let kept = before.and_then(|before| before.links_of(member)).cloned().unwrap_or_default();
            let keep = |link: Option<Link>, address: &Option<String>| {
                link.filter(|link| Some(&**link.address()) == address.as_deref())
            };
            let direct = keep(kept.direct, &member.direct).or_else(|| member.direct.as_deref().map(start));
            let whole = keep(kept.whole, &member.whole).or_else(|| {
                if member.whole == member.direct {
                    direct.clone()
                } else {
                    member.whole.as_deref().map(start)
                }
            });
            MemberLinks { direct, whole }
        });
        let links = links.collect();
        Self { topology, links }
    }

    /// The link for keys of this member, or for keyless commands.
    pub(crate) fn link(&self, member: MemberIndex, whole: bool) -> Option<&Link> {
        let links = &self.links[member.get()];
        if whole { links.whole.as_ref() } else { links.direct.as_ref() }
    }

    /// Links to the same run of a member.
    fn links_of(&self, member: &Member) -> Option<&MemberLinks> {
        let position = self.topology.members().binary_search_by_key(&member.id, |member| member.id).ok()?;
        (self.topology.members()[position].incarnation == member.incarnation).then(|| &self.links[position])
    }

    /// Gives up the links to runs of nodes that `next` says are over. Nodes that merely left the map
    /// answer what they were asked; their links end with the last request.
    fn abandon_what_is_over(&self, next: &Topology) {
        for (member, links) in self.topology.members().iter().zip(&self.links) {
            let is_over = next
                .members()
                .iter()
                .any(|now| now.id == member.id && (!now.up || now.incarnation != member.incarnation));
            if is_over {
                [&links.direct, &links.whole].into_iter().flatten().for_each(Link::abandon);
            }
        }
    }
}

/// What a client's clones, its refresh worker and its requests share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) settings: Settings,
    pub(crate) wanted: Arc<Wanted>,
    link_settings: Arc<LinkSettings>,
    snapshot: ArcSwap<Snapshot>,
    /// Which of the nodes that are up gets keyless commands; moves on when one fails.
    turn: AtomicUsize,
}

impl Core {
    pub(crate) fn new(
        settings: Settings,
        link_settings: Arc<LinkSettings>,
        wanted: Arc<Wanted>,
        first: Topology,
    ) -> Self {
        let snapshot = Snapshot::new(first, None, &link_settings, &wanted);
        // Clients of one cluster do not all choose the same node.
        let turn = AtomicUsize::new(usize::from(rand::random::<u16>()));
        Self { settings, wanted, link_settings, snapshot: ArcSwap::from_pointee(snapshot), turn }
    }

    /// The present snapshot; it stays valid, and its links open, for as long as it is held.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.snapshot.load().topology.epoch()
    }

    pub(crate) fn turn(&self) -> usize {
        self.turn.load(Ordering::Relaxed)
    }

    /// The node that `turn` chose did not answer: the next one is chosen, once however many found that out.
    pub(crate) fn next_turn(&self, turn: usize) {
        let _ = self.turn.compare_exchange(turn, turn.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Swaps in a newer map; older ones, equal ones and those of another cluster are ignored.
    /// Called by the refresh worker only.
    pub(crate) fn install(&self, topology: Topology) {
        let before = self.snapshot.load_full();
        let (map, known) = (&topology.view().map, &before.topology.view().map);
        if map.cluster_id != known.cluster_id {
            tracing::warn!(
                known = known.cluster_id.0,
                met = map.cluster_id.0,
                "a node of another cluster answers at a known address; its map is ignored. \
                 If the cluster was created anew, connect anew"
            );
            return;
        }
        if map.epoch <= known.epoch {
            return;
        }
        let next = Snapshot::new(topology, Some(&before), &self.link_settings, &self.wanted);
        let next = Arc::new(next);
        self.snapshot.store(next.clone());
        before.abandon_what_is_over(&next.topology);
    }

    /// Whom to ask for a map: the preferred first, then all members that are up in random order, then the seeds.
    pub(crate) fn candidates(&self, preferred: [Option<Link>; 2]) -> Vec<Link> {
        let snapshot = self.snapshot();
        let mut members: Vec<Link> = snapshot.links.iter().filter_map(|links| links.direct.clone()).collect();
        let turn = usize::from(rand::random::<u16>());
        if !members.is_empty() {
            let middle = turn % members.len();
            members.rotate_left(middle);
        }
        let mut all: Vec<Link> = preferred.into_iter().flatten().chain(members).collect();
        let mut known: Vec<Arc<str>> = Vec::new();
        all.retain(|link| {
            let is_new = !known.contains(link.address());
            known.push(link.address().clone());
            is_new
        });
        let seeds =
            self.settings.seeds.iter().filter(|seed| !known.iter().any(|address| **address == ***seed));
        all.extend(seeds.map(|seed| self.seed_link(seed)).collect::<Vec<_>>());
        all
    }

    fn seed_link(&self, seed: &str) -> Link {
        Link::start(seed, self.link_settings.clone(), self.wanted.clone())
    }
}
