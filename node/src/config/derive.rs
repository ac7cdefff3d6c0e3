//! What follows from other settings, and what must fit together.
//!
//! For: completing and checking a config once all sources are read.
//! Not here: ranges of single values (`settings`).

use std::collections::HashSet;
use std::path::PathBuf;

use super::{CLUSTER_PORT_OFFSET, Config, ConfigError, PEER_PORT_OFFSET};

/// Fills in what was not `given` (by flag name), from the rest and from `variable` (the environment).
pub fn complete(
    config: &mut Config,
    given: &HashSet<&'static str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(), ConfigError> {
    let network = &mut config.network;
    if !given.contains("cluster-port") {
        network.cluster_port = offset(network.port, "cluster-port", CLUSTER_PORT_OFFSET)?;
    }
    if !given.contains("peer-port") {
        network.peer_port = offset(network.port, "peer-port", PEER_PORT_OFFSET)?;
    }
    if !given.contains("announce-host") {
        let concrete = network.bind.iter().find(|address| !address.is_unspecified());
        network.announce_host = concrete.map(ToString::to_string).unwrap_or_default();
    }
    if !given.contains("dir") {
        config.storage.dir = default_dir(network.port, variable).ok_or_else(|| {
            ConfigError::Conflict(
                "no data directory: neither XDG_DATA_HOME nor HOME is set; give --dir".to_owned(),
            )
        })?;
    }
    if !given.contains("threads") {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        config.limits.threads = u16::try_from(cores.min(1024)).unwrap_or(1);
    }
    Ok(())
}

fn offset(port: u16, flag: &'static str, offset: u16) -> Result<u16, ConfigError> {
    port.checked_add(offset).ok_or(ConfigError::PortTooHigh { flag, port, offset })
}

fn default_dir(port: u16, variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    // The XDG base directory specification: a relative path counts as unset.
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("korum").join(port.to_string()))
}

/// Checks what single ranges cannot.
pub fn check(config: &Config) -> Result<(), ConfigError> {
    let conflict = |text: String| Err(ConfigError::Conflict(text));
    let network = &config.network;
    let ports = [network.port, network.cluster_port, network.peer_port];
    if ports[0] == ports[1] || ports[0] == ports[2] || ports[1] == ports[2] {
        return conflict(format!(
            "port {}, cluster-port {} and peer-port {} must differ",
            ports[0], ports[1], ports[2]
        ));
    }
    let timing = &config.timing;
    if timing.lease < timing.heartbeat * 2 {
        return conflict(format!(
            "lease ({:?}) must be at least two heartbeats ({:?} each): one lost heartbeat must not stop a node",
            timing.lease, timing.heartbeat
        ));
    }
    if timing.raft_election < timing.raft_heartbeat * 2 {
        return conflict(format!(
            "raft-election ({:?}) must be at least two raft-heartbeats ({:?} each)",
            timing.raft_election, timing.raft_heartbeat
        ));
    }
    if timing.confirm_window < timing.raft_heartbeat * 2 || timing.confirm_window >= timing.lease {
        return conflict(format!(
            "confirm-window ({:?}) must be at least two raft-heartbeats ({:?} each) and shorter than the lease ({:?})",
            timing.confirm_window, timing.raft_heartbeat, timing.lease
        ));
    }
    if config.limits.client_query_buffer_limit < config.limits.proto_max_bulk_len {
        return conflict(format!(
            "client-query-buffer-limit ({}) must be at least proto-max-bulk-len ({})",
            config.limits.client_query_buffer_limit, config.limits.proto_max_bulk_len
        ));
    }
    Ok(())
}
