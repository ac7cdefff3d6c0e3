//! Two ends on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::id::{ClusterId, Incarnation, NodeId};
use korum_protocol::peer::piece::{self, PIECE_BYTES};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::env::Clock;
use crate::env::transport::{TcpListener, TcpStream};

const SECOND: Duration = Duration::from_secs(1);

fn local(node: u64, cluster: Option<u64>, secret: Option<&'static str>) -> Arc<LocalPeer> {
    let secret = secret.map(|secret| Bytes::from_static(secret.as_bytes()));
    Arc::new(LocalPeer::new(
        NodeId(node),
        Incarnation(1),
        cluster.map(ClusterId),
        "127.0.0.1:1".into(),
        secret,
    ))
}

/// Dials from `a` to `b`; both results.
async fn meet(
    a: &LocalPeer,
    b: Arc<LocalPeer>,
    expect: Option<NodeId>,
    purpose: Purpose,
) -> (Result<PeerConnection, DialError>, Result<(PeerConnection, Purpose), PeerError>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let accepted = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        accept(&b, stream).await
    });
    let dialed = dial(a, &address, expect, purpose, SECOND).await;
    (dialed, accepted.await.unwrap())
}

#[tokio::test]
async fn peers_of_one_cluster_meet_and_exchange_frames_of_all_sizes() {
    for secret in [None, Some("s")] {
        let (a, b) = (local(1, Some(9), secret), local(2, Some(9), secret));
        let (dialed, accepted) = meet(&a, b, Some(NodeId(2)), Purpose::Replication).await;
        let (mut left, (mut right, purpose)) = (dialed.unwrap(), accepted.unwrap());
        assert_eq!(purpose, Purpose::Replication);
        assert_eq!((left.peer.node, right.peer.node), (NodeId(2), NodeId(1)));
        assert_eq!(right.peer.address, "127.0.0.1:1");
        let sizes = [0, 1, 9, 5000, 16 << 10, (64 << 10) + 1, 3 << 20, 7];
        let sender = tokio::spawn(async move {
            for size in sizes {
                let body = vec![size as u8; size];
                left.writer.write_parts(70, &[&body[..size / 3], &body[size / 3..]]).await.unwrap();
            }
            left.writer.close().await.unwrap();
        });
        for size in sizes {
            let frame = right.reader.read().await.unwrap().unwrap();
            assert_eq!((frame.kind, &frame.body[..]), (70, &vec![size as u8; size][..]));
        }
        assert!(right.reader.read().await.unwrap().is_none());
        sender.await.unwrap();
    }
}

#[tokio::test]
async fn strangers_are_told_why_they_may_not_talk() {
    let me = local(1, Some(9), Some("s"));
    let wrong_secret = meet(&me, local(2, Some(9), Some("t")), None, Purpose::Raft).await;
    assert!(matches!(wrong_secret.0, Err(DialError::Unauthorized)));
    assert!(wrong_secret.1.is_err());
    let no_secret = meet(&me, local(2, Some(9), None), None, Purpose::Raft).await;
    assert!(matches!(no_secret.0, Err(DialError::Unauthorized)));
    assert!(matches!(no_secret.1, Err(PeerError::Rejected { .. })));
    let other_cluster = meet(&me, local(2, Some(8), Some("s")), None, Purpose::Raft).await;
    assert!(matches!(other_cluster.0, Err(DialError::WrongCluster)));
    let other_node = meet(&me, local(2, Some(8), Some("s")), Some(NodeId(3)), Purpose::Raft).await;
    assert!(matches!(
        other_node.0,
        Err(DialError::WrongPeer { found: NodeId(2), incarnation: Incarnation(1) })
    ));
    let same_node = meet(&me, local(1, Some(9), Some("s")), None, Purpose::Raft).await;
    assert!(matches!(same_node.0, Err(DialError::Rejected(_))));
    // One that asks to join may only ask.
    let joiner = local(5, None, None);
    assert!(meet(&joiner, local(2, Some(9), None), None, Purpose::Control).await.0.is_ok());
    assert!(meet(&joiner, local(2, Some(9), None), None, Purpose::Raft).await.0.is_err());
}

#[tokio::test]
async fn a_re_formed_cluster_is_another_one_and_survivors_of_the_former_may_tell_and_ask_until_all_know() {
    let (old, new) = (local(1, Some(9), Some("s")), local(2, Some(9), Some("s")));
    new.take_formation(ClusterId(10));
    let asks = |purpose| meet(&old, Arc::clone(&new), Some(NodeId(2)), purpose);
    assert!(matches!(asks(Purpose::Raft).await.0, Err(DialError::WrongCluster)));
    let (dialed, accepted) = asks(Purpose::Control).await;
    assert!(dialed.is_ok());
    let cluster_id = accepted.unwrap().0.peer.cluster_id;
    assert_eq!(cluster_id, Some(ClusterId(9)));
    let silent = tokio::spawn({
        let new = Arc::clone(&new);
        async move { new.until_silent(cluster_id, Purpose::Control).await }
    });
    tokio::task::yield_now().await;
    assert!(!silent.is_finished());
    new.known_as(ClusterId(9));
    tokio::task::yield_now().await;
    assert!(!silent.is_finished(), "the map does not know yet");
    new.known_as(ClusterId(10));
    tokio::time::timeout(SECOND, silent).await.unwrap().unwrap();
    assert!(matches!(asks(Purpose::Control).await.0, Err(DialError::WrongCluster)));
    assert!(!new.talks_to(ClusterId(0), Purpose::Control));
    let restarted = local(2, Some(10), Some("s"));
    restarted.known_as(ClusterId(9));
    assert!(restarted.talks_to(ClusterId(9), Purpose::Control));
    old.set_cluster_id(ClusterId(10));
    assert!(meet(&old, new, Some(NodeId(2)), Purpose::Raft).await.0.is_ok());
}

#[tokio::test]
async fn an_acceptor_that_only_mirrors_proves_nothing() {
    let me = local(1, Some(9), Some("s"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 4096];
        loop {
            let n = stream.read(&mut bytes).await.unwrap();
            if n == 0 || stream.write_all(&bytes[..n]).await.is_err() {
                return;
            }
        }
    });
    assert!(dial(&me, &address, None, Purpose::Raft, SECOND).await.is_err());
}

#[tokio::test]
async fn dial_tells_gone_from_silent() {
    let me = local(1, Some(9), None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let silent = dial(&me, &address, None, Purpose::Raft, Duration::from_millis(50)).await;
    assert!(matches!(silent, Err(DialError::Timeout)));
    drop(listener);
    assert!(matches!(dial(&me, &address, None, Purpose::Raft, SECOND).await, Err(DialError::Refused)));
    let unknown = dial(&me, "no-such-host.invalid:1", None, Purpose::Raft, SECOND * 5).await;
    assert!(matches!(unknown, Err(DialError::Unreachable(_) | DialError::Timeout)));
}

#[tokio::test]
async fn garbage_on_the_peer_port_ends_that_connection_only() {
    let b = local(2, Some(9), None);
    for garbage in [&b"*1\r\n$4\r\nPING\r\n"[..], b"GET / HTTP/1.1\r\n\r\n", &[0; 64], &[255; 64]] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        stream.write_all(garbage).await.unwrap();
        assert!(accept(&b, accepted).await.is_err());
    }
}

#[tokio::test]
async fn large_frames_share_the_connection_and_small_ones_pass_them() {
    let (a, b) = (local(1, Some(9), None), local(2, Some(9), None));
    let (dialed, accepted) = meet(&a, b, Some(NodeId(2)), Purpose::Forward).await;
    let (mut left, (mut right, _)) = (dialed.unwrap(), accepted.unwrap());
    let body = |kind: u8, size: usize| Bytes::from((0..size).map(|at| at as u8 ^ kind).collect::<Vec<u8>>());
    let large = [(1, 5 * PIECE_BYTES + 1), (2, PIECE_BYTES + 1), (3, PIECE_BYTES), (4, 2 * PIECE_BYTES)];
    let sender = tokio::spawn(async move {
        let mut cutter = Cutter::new(2);
        for (kind, size) in large {
            // However a body lies in memory.
            let mut bytes = body(kind, size);
            let (first, second) = (bytes.split_to(size / 3), bytes.split_to(7));
            cutter.add(kind, [first, second, bytes].into());
        }
        while !cutter.is_empty() {
            cutter.write_piece(&mut left.writer).await.unwrap();
            left.writer.write(9, b"small").await.unwrap();
        }
        assert_eq!(cutter.pending_bytes(), 0);
        left.writer.close().await.unwrap();
    });
    let (mut kinds, mut passed) = (Vec::new(), 0);
    while let Some(frame) = right.reader.read().await.unwrap() {
        if frame.kind == 9 {
            passed += 1;
            continue;
        }
        let (_, size) = large[usize::from(frame.kind) - 1];
        assert!(frame.body == body(frame.kind, size), "kind {}", frame.kind);
        kinds.push(frame.kind);
    }
    assert_eq!((kinds, passed), (vec![2, 3, 4, 1], 11), "short ones do not wait for the long one");
    sender.await.unwrap();
}

#[tokio::test]
async fn pieces_that_never_end_or_do_not_fit_end_the_connection() {
    let huge = u32::try_from(korum_protocol::limits::DATA_FRAME_BYTES_MAX + 1).unwrap();
    let begun = piece::head(0, 1, 1000, 0);
    for (pieces, is_over) in [
        (vec![(piece::head(0, 1, huge, 0), 1)], true),
        (vec![(begun, 1), (piece::head(1, 1, huge - 1, 0), 1)], true),
        (vec![(begun, 1), (piece::head(0, 1, 1000, 2), 1)], true),
        (vec![(begun, 1001)], true),
        (vec![(begun, 0)], true),
        (vec![(begun, 1)], false),
    ] {
        let (a, b) = (local(1, Some(9), None), local(2, Some(9), None));
        let (dialed, accepted) = meet(&a, b, Some(NodeId(2)), Purpose::Forward).await;
        let (mut left, (mut right, _)) = (dialed.unwrap(), accepted.unwrap());
        for (head, size) in &pieces {
            left.writer.write_parts(piece::PIECE, &[head, &vec![0; *size]]).await.unwrap();
        }
        left.writer.close().await.unwrap();
        let read = right.reader.read().await;
        let expected = if is_over {
            matches!(read, Err(PeerError::Piece(_)))
        } else {
            matches!(read, Err(PeerError::Truncated))
        };
        assert!(expected, "{pieces:?}: {read:?}");
    }
}

fn rpc(local: Arc<LocalPeer>, events: Arc<AtomicUsize>) -> PeerRpc {
    let count = move |_| {
        events.fetch_add(1, Ordering::SeqCst);
    };
    PeerRpc::new(local, Clock::system(), Arc::new(count))
}

fn serve(local: Arc<LocalPeer>, listener: TcpListener) -> tokio::task::JoinHandle<()> {
    let slow_echo = |_, request: Bytes| -> server::Reply {
        Box::pin(async move {
            if request.starts_with(b"slow") {
                tokio::time::sleep(SECOND / 4).await;
            }
            request
        })
    };
    let handlers = PeerHandlers {
        raft: Arc::new(slow_echo),
        control: Arc::new(slow_echo),
        data: Arc::new(|_, _| ()),
        on_peer: Arc::new(|_, _, _| ()),
        on_event: Arc::new(|_| ()),
    };
    tokio::spawn(PeerServer::new(local, handlers).run(listener))
}

#[tokio::test]
async fn calls_share_connections_and_a_late_reply_never_answers_another_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = serve(local(2, Some(9), None), listener);
    let events = Arc::new(AtomicUsize::new(0));
    let rpc = rpc(local(1, Some(9), None), Arc::clone(&events));
    let call = |body: &'static str, limit| {
        rpc.call(NodeId(2), &address, Purpose::Control, Bytes::from_static(body.as_bytes()), limit)
    };
    assert_eq!(call("one", SECOND).await.unwrap(), "one");
    assert!(matches!(call("slow", SECOND / 10).await, Err(RpcError::Timeout)));
    for _ in 0..10 {
        assert_eq!(call("two", SECOND).await.unwrap(), "two");
    }
    assert_eq!(events.load(Ordering::SeqCst), 0);
    // The process ends: its idle connections are found dead, the dial is refused, and that is reported.
    server.abort();
    let _ = server.await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let error = call("three", SECOND).await.unwrap_err();
    assert!(matches!(&error, RpcError::Dial { source: DialError::Refused, .. }), "{error:?}");
    assert!(!error.is_unknown());
    assert!(events.load(Ordering::SeqCst) >= 2);
    assert!(matches!(call("four", SECOND).await, Err(RpcError::BackingOff(_))));
}
