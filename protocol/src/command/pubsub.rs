//! Publish and subscribe.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{KeyFlags, KeySpec};

/// A shard channel: routed by slot as keys are, and no key.
const CHANNEL: KeySpec = KeySpec::one(1, &[KeyFlags::NOT_KEY]);
/// Shard channels.
const CHANNELS: KeySpec = KeySpec::many(-1, 1, &[KeyFlags::NOT_KEY]);

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: PubSub;

    Subscribe "subscribe" -2 [PUBSUB NOSCRIPT LOADING STALE] [] "2.0.0" "O(N) with N channels"
        "Listens to channels";
    Unsubscribe "unsubscribe" -1 [PUBSUB NOSCRIPT LOADING STALE] [] "2.0.0" "O(N) with N channels"
        "Stops listening to channels, or to all";
    PSubscribe "psubscribe" -2 [PUBSUB NOSCRIPT LOADING STALE] [] "2.0.0" "O(N) with N patterns"
        "Listens to channels whose names match patterns";
    PUnsubscribe "punsubscribe" -1 [PUBSUB NOSCRIPT LOADING STALE] [] "2.0.0" "O(N) with N patterns"
        "Stops listening to channels that match patterns, or to all";
    Publish "publish" 3 [PUBSUB LOADING STALE FAST] [] "2.0.0" "O(N+M) with N subscribers and M patterns of all clients"
        "Sends a message to those who listen to a channel";
    SSubscribe "ssubscribe" -2 [PUBSUB NOSCRIPT LOADING STALE] [CHANNELS] "7.0.0" "O(N) with N channels"
        "Listens to shard channels";
    SUnsubscribe "sunsubscribe" -1 [PUBSUB NOSCRIPT LOADING STALE] [CHANNELS] "7.0.0" "O(N) with N channels"
        "Stops listening to shard channels, or to all";
    SPublish "spublish" 3 [PUBSUB LOADING STALE FAST] [CHANNEL] "7.0.0" "O(N) with N subscribers"
        "Sends a message to those who listen to a shard channel";
    PubSub "pubsub" -2 [] [] "2.8.0" "Depends on the subcommand"
        "Looks at who listens" { .plain().subcommands(PUBSUB) };
}

commands! {
    static PUBSUB: PubSub;

    PubSubChannels "pubsub|channels" -2 [PUBSUB LOADING STALE] [] "2.8.0" "O(N) with N channels"
        "Returns the channels that somebody listens to";
    PubSubNumsub "pubsub|numsub" -2 [PUBSUB LOADING STALE] [] "2.8.0" "O(N) with N channels asked for"
        "Counts who listens to channels";
    PubSubNumpat "pubsub|numpat" 2 [PUBSUB LOADING STALE] [] "2.8.0" "O(1)"
        "Counts the patterns that somebody listens to";
    PubSubShardchannels "pubsub|shardchannels" -2 [PUBSUB LOADING STALE] [] "7.0.0" "O(N) with N channels"
        "Returns the shard channels that somebody listens to";
    PubSubShardnumsub "pubsub|shardnumsub" -2 [PUBSUB LOADING STALE] [] "7.0.0" "O(N) with N channels asked for"
        "Counts who listens to shard channels";
    PubSubHelp "pubsub|help" 2 [LOADING STALE] [] "6.2.0" "O(1)"
        "Describes the subcommands" { .plain() };
}
