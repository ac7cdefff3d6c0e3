//! No arguments make a command of these families panic.

use bytes::{Bytes, BytesMut};
use korum_protocol::id::NodeId;
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};
use proptest::prelude::*;

use super::cluster::{ClusterContext, SlotKeys, cluster};
use super::latency::{LatencyFigures, latency};
use super::test_maps::{grown, split};
use super::topology::TopologyCache;
use super::{client, connection, korum, server};
use crate::admin::command_stats::AllTotals;
use crate::admin::info;
use crate::admin::slowlog::{Latency, SlowLog};
use crate::admin::status::NodeState;
use crate::config::Config;
use crate::config::live::Live;
use crate::env::Tick;
use crate::net::clients::Registry;
use crate::net::session::{PortKind, Session};

struct NoKeys;

impl SlotKeys for NoKeys {
    fn count(&self, _: u16) -> usize {
        0
    }
    fn keys(&self, _: u16, _: usize) -> Vec<Bytes> {
        Vec::new()
    }
}

const WORDS: &str = "client cluster korum config info hello auth ping echo select quit reset list kill pause unpause \
    unblock reply setname getname setinfo id info no-evict no-touch tracking trackinginfo caching getredir help addr \
    laddr type normal pubsub skipme yes no user default lib-name on off skip all write timeout error myid myshardid \
    nodes slots shards links keyslot countkeysinslot getkeysinslot replicas meet forget map status json explain plan \
    add remove count zone weight drain replication peer get set resetstat rewrite maxmemory port save latency slowlog \
    latest history graph histogram doctor len wait shutdown now force abort time lolwut version 0 1 -1 3 \
    9223372036854775807 18446744073709551616 127.0.0.1 127.0.0.1:7001 [::1]:1 :: * [a- \\ ? \u{e9} \u{0} a\r\nb";

fn argument() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&'static str> = WORDS.split(' ').collect();
    prop_oneof![
        8 => proptest::sample::select(words).prop_map(|word| word.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..200),
    ]
}

proptest! {
    #[test]
    fn any_arguments_are_answered(
        arguments in proptest::collection::vec(argument(), 1..7),
        family in 0..16usize,
        three in any::<bool>(),
    ) {
        let mut buffer = Vec::new();
        let mut ranges = Vec::new();
        for argument in &arguments {
            ranges.push(buffer.len()..buffer.len() + argument.len());
            buffer.extend_from_slice(argument);
        }
        let args = Args::new(&buffer, &ranges);
        let version = if three { ProtocolVersion::Resp3 } else { ProtocolVersion::Resp2 };
        let mut out = BytesMut::new();
        let reply = &mut ReplyWriter::new(&mut out, version);
        let mut session = Session::new(1, PortKind::Cluster, three);
        let registry = std::sync::Arc::new(Registry::default());
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let place = registry.enter(address, address, PortKind::Client, Tick(0), 2).expect("room for one");
        let me = &place.client;
        match family {
            0 => client::client(args, &mut session, me, &registry, Tick(u64::MAX), reply),
            1 => {
                let view = if three { grown(64) } else { split(64) };
                let topology = TopologyCache::new(NodeId(1), true);
                let context = ClusterContext {
                    view: &view,
                    me: NodeId(1),
                    has_lease: true,
                    topology: &topology,
                    keys: &NoKeys,
                    links: &[],
                };
                let _ = cluster(args, &context, reply);
            }
            2 | 3 => {
                let view = if three { grown(64) } else { split(64) };
                let _ = korum::korum(args, &view, &NodeState { me: NodeId(1), ..NodeState::default() }, reply);
            }
            4 | 5 => {
                let _ = server::config(args, &Live::new(&Config::default()), PortKind::Client, reply);
            }
            6 => server::info(args, &info::example(PortKind::Client), reply),
            7 => connection::hello(args, &mut session, me, "pw", reply),
            8 => connection::auth(args, &mut session, "pw", reply),
            9 => connection::ping(args, reply),
            10 => connection::select(args, &mut session, me, &crate::store::Databases::default(), reply),
            11 => server::lolwut(args, 1, reply),
            12 => server::slowlog(args, &SlowLog::default(), reply),
            13 => {
                let (delays, commands, threshold_ms) = (&Latency::default(), &AllTotals::new, Some(1));
                latency(args, &LatencyFigures { delays, commands, threshold_ms, now: 1 }, reply);
            }
            14 => drop(server::wait(args)),
            _ => drop(server::shutdown(args)),
        }
        // One reply at most: nothing that a client sent may end a line early.
        if out.first() == Some(&b'-') {
            prop_assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1);
        }
    }
}
