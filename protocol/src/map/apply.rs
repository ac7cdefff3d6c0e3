//! One change on one map: is it still wanted, is it allowed, and what does it touch?
//!
//! For: turning a [`MapChange`] into an `Edit`, or into the reason why not. Pure, so that all nodes agree.
//! Not here: the consequences for holders, primaries and eras; `settle` draws them for every change alike.
//! Next: `apply/members` and `apply/copies` hold the rules, change by change.

mod copies;
mod members;

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::databases::{self, SETTING_DATABASES};
use super::view::NodeList;
use super::{ClusterMap, LossPolicy, MapChange, NodeRecord, PartitionId, Refusal, Registration, View};
use super::{Liveness, Membership};
use crate::id::{ClusterId, Epoch, NodeId};
use crate::limits::REPLICATION_MAX;

/// Least and most partitions of a cluster (PLACEMENT.md §1).
const PARTITIONS: std::ops::RangeInclusive<u32> = 64..=16384;
/// Least and most weight of a node (PLACEMENT.md §5).
const WEIGHTS: std::ops::RangeInclusive<u8> = 1..=16;
/// Most bounded-load permille: beyond it no node is ever full.
const BALANCE_PERMILLE_MAX: u16 = 10_000;
/// Most bytes of all settings together: a map must fit in one control frame, several times.
const SETTINGS_BYTES_MAX: usize = 1 << 20;

/// The setting that names the policy for lost partitions: `empty` or `refuse`.
/// Going from `refuse` to `empty` is how an operator gives up what is lost.
pub const SETTING_LOSS_POLICY: &str = "loss-policy";
/// The setting that bounds the load of nodes, in permille above the mean; 0 turns it off.
pub const SETTING_BALANCE_PERMILLE: &str = "balance-permille";

/// The setting that names the formation (16 hexadecimal digits) of a cluster whose quorum was re-formed.
pub const SETTING_FORMATION: &str = "formation";

/// What a change does, before its consequences for holders are drawn.
pub(super) struct Edit {
    /// The map with its nodes, indices and settings changed; epoch and holders are still the old ones.
    pub map: ClusterMap,
    /// Does this outdate the cutovers that are under way?
    pub membership: bool,
    /// Nodes that lose everything they hold.
    pub gone: SmallVec<[NodeId; 1]>,
    /// Holders of the partitions whose primary proposed this, in any order.
    pub copies: BTreeMap<PartitionId, NodeList>,
    /// May a surplus primary be dropped where `copies` says so? (It froze the partition before it proposed.)
    pub hands_over: bool,
}

impl Edit {
    pub(super) fn new(map: ClusterMap, membership: bool) -> Self {
        Self { map, membership, gone: SmallVec::new(), copies: BTreeMap::new(), hands_over: false }
    }
}

/// Decides what a change does.
pub(super) fn decide(view: &View, change: &MapChange) -> Result<Edit, Refusal> {
    match change {
        MapChange::Create { .. } => Err(outdated("the cluster exists already")),
        MapChange::Join { node, registration } => members::join(view, *node, registration),
        MapChange::Admit { node, incarnation } => members::admit(view, *node, *incarnation),
        MapChange::Register { node, registration } => members::register(view, *node, registration),
        MapChange::MarkDown { node, incarnation } => members::mark_down(view, *node, *incarnation),
        MapChange::Exclude { node, incarnation } => members::exclude(view, *node, *incarnation),
        MapChange::Drain { node } => members::drain(view, *node),
        MapChange::Forget { node } => members::forget(view, *node),
        MapChange::SetWeight { node, weight } => members::set_weight(view, *node, *weight),
        MapChange::Compact => members::compact(view),
        MapChange::Cutover { membership_epoch, moves } => copies::cutover(view, *membership_epoch, moves),
        MapChange::DropHolders { drops } => copies::drop_holders(view, drops),
        MapChange::SetReplication { replication } => set_replication(view, *replication),
        MapChange::Set { name, value } => set(view, name, value.as_deref()),
        MapChange::SwapDatabases { first, second, swaps } => databases::swap(view, *first, *second, *swaps),
    }
}

/// The first map of a cluster: one node, which holds everything.
pub(super) fn create(change: &MapChange) -> Result<ClusterMap, Refusal> {
    let MapChange::Create {
        cluster_id,
        partitions,
        replication,
        placement_seed,
        loss_policy,
        node,
        registration,
    } = change
    else {
        return Err(forbidden("there is no cluster yet: it begins with Create"));
    };
    if !PARTITIONS.contains(partitions) || !partitions.is_power_of_two() {
        return Err(forbidden(format!("partitions must be a power of two in 64..=16384, not {partitions}")));
    }
    check_replication(*replication)?;
    check_weight(registration.weight)?;
    let epoch = Epoch(1);
    Ok(ClusterMap {
        cluster_id: *cluster_id,
        epoch,
        membership_epoch: epoch,
        partitions: *partitions,
        replication: *replication,
        placement_seed: *placement_seed,
        balance_permille: 0,
        loss_policy: *loss_policy,
        nodes: BTreeMap::from([(*node, record(registration, Membership::Member))]),
        indices: vec![Some(*node); usize::from(registration.weight)],
        holders: BTreeMap::new(),
        primary_since: vec![epoch; *partitions as usize],
        emptied: BTreeMap::new(),
        lost_total: 0,
        settings: BTreeMap::new(),
    })
}

fn set_replication(view: &View, replication: u8) -> Result<Edit, Refusal> {
    check_replication(replication)?;
    if view.map.replication == replication {
        return Err(outdated(format!("there are {replication} copies already")));
    }
    let mut map = view.map.clone();
    map.replication = replication;
    Ok(Edit::new(map, true))
}

fn set(view: &View, name: &str, value: Option<&str>) -> Result<Edit, Refusal> {
    if view.map.settings.get(name).map(String::as_str) == value {
        return Err(outdated(format!("{name} is set so already")));
    }
    let mut map = view.map.clone();
    let mut membership = false;
    match name {
        SETTING_LOSS_POLICY => {
            map.loss_policy = match value {
                None | Some("empty") => LossPolicy::Empty,
                Some("refuse") => LossPolicy::Refuse,
                Some(other) => {
                    return Err(forbidden(format!(
                        "{name} must be \"empty\" or \"refuse\", not \"{other}\""
                    )));
                }
            };
        }
        SETTING_BALANCE_PERMILLE => {
            let permille = value.unwrap_or("0").parse().ok();
            let permille = permille.filter(|&permille| permille <= BALANCE_PERMILLE_MAX);
            map.balance_permille = permille
                .ok_or_else(|| forbidden(format!("{name} must be a number in 0..={BALANCE_PERMILLE_MAX}")))?;
            membership = true;
        }
        SETTING_DATABASES => return Err(forbidden(format!("{name} are swapped, not set"))),
        SETTING_FORMATION if value.and_then(parse_formation).is_none() => {
            return Err(forbidden(format!("{name} must be 16 hexadecimal digits, not all of them 0")));
        }
        _ => {}
    }
    match value {
        Some(value) => map.settings.insert(name.to_owned(), value.to_owned()),
        None => map.settings.remove(name),
    };
    let bytes: usize = map.settings.iter().map(|(name, value)| name.len() + value.len()).sum();
    if value.is_some() && bytes > SETTINGS_BYTES_MAX {
        return Err(forbidden(format!("all settings together may have {SETTINGS_BYTES_MAX} bytes")));
    }
    Ok(Edit::new(map, membership))
}

/// The formation that the text names.
pub(super) fn parse_formation(text: &str) -> Option<ClusterId> {
    let is_whole = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u64::from_str_radix(text, 16).ok()?;
    (is_whole && number != 0).then_some(ClusterId(number))
}

fn record(registration: &Registration, membership: Membership) -> NodeRecord {
    NodeRecord {
        addresses: registration.addresses.clone(),
        zone: registration.zone.clone(),
        weight: registration.weight,
        incarnation: registration.incarnation,
        liveness: Liveness::Up,
        membership,
    }
}

fn check_replication(replication: u8) -> Result<(), Refusal> {
    if (1..=REPLICATION_MAX).contains(&replication) {
        return Ok(());
    }
    Err(forbidden(format!("the number of copies must be in 1..={REPLICATION_MAX}, not {replication}")))
}

fn check_weight(weight: u8) -> Result<(), Refusal> {
    if WEIGHTS.contains(&weight) {
        return Ok(());
    }
    Err(forbidden(format!("a weight must be in {WEIGHTS:?}, not {weight}")))
}

pub(super) fn outdated(why: impl Into<String>) -> Refusal {
    // `View::apply` fills in the epoch.
    Refusal::Outdated { at: Epoch::default(), reason: why.into() }
}

pub(super) fn forbidden(why: impl Into<String>) -> Refusal {
    Refusal::Forbidden(why.into())
}
