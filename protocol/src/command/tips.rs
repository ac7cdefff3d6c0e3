//! Hints for clients: how to route a command in a cluster and how to merge the replies.
//!
//! For: the sets of hints that commands share, as Redis words them.

/// Two calls may answer differently.
pub(super) const UNSTABLE: &[&str] = &["nondeterministic_output"];
/// Two calls may answer in different orders.
pub(super) const UNSTABLE_ORDER: &[&str] = &["nondeterministic_output_order"];
/// Ask each shard for its keys; answers stay in the order of the keys.
pub(super) const SPLIT: &[&str] = &["request_policy:multi_shard"];
/// Ask each shard for its keys; one failure is the answer.
pub(super) const SPLIT_ALL_SUCCEED: &[&str] =
    &["request_policy:multi_shard", "response_policy:all_succeeded"];
/// Ask each shard for its keys; the least is the answer.
pub(super) const SPLIT_LEAST: &[&str] = &["request_policy:multi_shard", "response_policy:agg_min"];
/// Ask each shard for its keys; the sum is the answer.
pub(super) const SPLIT_SUM: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];
/// Ask all shards; one failure is the answer.
pub(super) const SHARDS_ALL_SUCCEED: &[&str] =
    &["request_policy:all_shards", "response_policy:all_succeeded"];
/// Ask all shards; the least is the answer.
pub(super) const SHARDS_LEAST: &[&str] = &["request_policy:all_shards", "response_policy:agg_min"];
/// Ask all shards; the sum is the answer.
pub(super) const SHARDS_SUM: &[&str] = &["request_policy:all_shards", "response_policy:agg_sum"];
/// Ask all shards; two calls may answer differently.
pub(super) const SHARDS_UNSTABLE: &[&str] = &["request_policy:all_shards", "nondeterministic_output"];
/// Ask all shards; two calls may answer in different orders.
pub(super) const SHARDS_UNSTABLE_ORDER: &[&str] =
    &["request_policy:all_shards", "nondeterministic_output_order"];
/// Ask all shards; merging needs knowledge of the command.
pub(super) const SHARDS_SPECIAL: &[&str] =
    &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"];
/// Routing needs knowledge of the command.
pub(super) const WALK: &[&str] = &["nondeterministic_output", "request_policy:special"];
/// Ask all nodes; two calls may answer differently.
pub(super) const NODES_UNSTABLE: &[&str] = &["request_policy:all_nodes", "nondeterministic_output"];
/// Ask all nodes; the sum is the answer, and two calls may answer differently.
pub(super) const NODES_SUM_UNSTABLE: &[&str] =
    &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"];
/// Ask all nodes; merging needs knowledge of the command.
pub(super) const NODES_SPECIAL: &[&str] =
    &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"];
/// Ask all nodes; one failure is the answer.
pub(super) const NODES_ALL_SUCCEED: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];
/// Ask all shards; yes is the answer when all say so.
pub(super) const SHARDS_AND: &[&str] = &["request_policy:all_shards", "response_policy:agg_logical_and"];
/// Ask all shards; one success is the answer.
pub(super) const SHARDS_ONE: &[&str] = &["request_policy:all_shards", "response_policy:one_succeeded"];
