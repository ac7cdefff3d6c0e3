//! The tasks at the two ends of a replication link.
//!
//! For: writing what was appended to a link, reading acknowledgements, and on the other side applying
//! frames and answering them.
//! Not here: what a message does (`replica`), what an acknowledgement releases (`link`).

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use korum_protocol::id::{Epoch, Incarnation, NodeId};
use korum_protocol::peer::piece::PIECE_BYTES;
use korum_protocol::rope::Rope;
use rand::RngExt;
use smallvec::SmallVec;

use super::link::{Lane, Link, Place};
use super::message::{self, Acknowledged, Compared, HEADER_BYTES};
use super::replica;
use crate::env::random::random;
use crate::net::peer::{Backoff, Cutter, FrameReader, FrameWriter, PeerConnection, Purpose, dial};
use crate::node::Node;
use crate::store::{Garbage, Source};

/// Frame kind: messages of a primary.
const MESSAGES: u8 = 1;
/// Frame kind: messages of a primary that came by the large lane.
const LARGE_MESSAGES: u8 = 3;
/// Frame kind: acknowledgement and answers of a replica.
const ANSWER: u8 = 2;
/// How long a replica waits for its map to reach a frame's epoch: several elections.
const MAP_WAIT: Duration = Duration::from_secs(3);
/// How long a dial may take.
const DIAL_WAIT: Duration = Duration::from_secs(1);
/// How often a replica that is busy with a frame, or waits for the map that the frame names, says that it is there.
pub const SIGN_OF_LIFE: Duration = Duration::from_millis(200);
/// Bytes applied before other tasks of the thread get their turn: about a millisecond of work.
const APPLY_BYTES: usize = 256 << 10;

/// Keeps a link to one run of a peer for as long as the map shows that run up.
pub async fn keep_link(node: Arc<Node>, peer: NodeId, incarnation: Incarnation) {
    let mut backoff = Backoff::default();
    while let Some(address) = node.peer_address(peer, incarnation) {
        let mut opened = None;
        match dial(node.local_peer(), &address, Some(peer), Purpose::Replication, DIAL_WAIT).await {
            Ok(connection) if connection.peer.incarnation == incarnation => {
                opened = Some(node.clock().now());
                let link = Arc::new(Link::numbered(peer, incarnation, node.links().next_number()));
                node.links().open(&node, &link);
                run_link(&node, &link, connection).await;
                link.break_off();
                node.links().close(&node, &link);
                node.suspect(peer, incarnation);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(?peer, %error, "cannot open the replication link");
                node.suspect(peer, incarnation);
            }
        }
        tokio::time::sleep(backoff.ended(opened, node.clock().now(), random().random())).await;
    }
}

/// Serves one connection until it ends or the map no longer shows that run up.
async fn run_link(node: &Arc<Node>, link: &Arc<Link>, connection: PeerConnection) {
    let PeerConnection { mut reader, mut writer, .. } = connection;
    let result = tokio::select! {
        result = write_messages(node, link, &mut writer) => result,
        result = read_answers(node, link, &mut reader) => result,
        () = node.until_gone(link.peer, link.incarnation) => Ok(()),
        () = link.broken() => Ok(()),
    };
    if let Err(reason) = result {
        tracing::info!(peer = ?link.peer, %reason, "replication link ended");
    }
}

async fn write_messages(node: &Arc<Node>, link: &Arc<Link>, writer: &mut FrameWriter) -> Result<(), String> {
    let text = |error: crate::net::peer::PeerError| error.to_string();
    // One after the other, as their positions say.
    let mut large = Cutter::new(1);
    let mut written = Place { lane: Lane::Small, position: 0 };
    let (mut large_written, mut large_last) = (Place { lane: Lane::Large, position: 0 }, 0);
    loop {
        let small = link.try_take();
        let is_idle = small.is_none();
        if let Some((last, messages)) = small {
            let pieces = frame_body(node, last, messages);
            let slices: SmallVec<[&[u8]; 4]> = pieces.iter().map(|piece| &piece[..]).collect();
            writer.write_parts(MESSAGES, &slices).await.map_err(text)?;
            link.note_written(written, pieces.iter().map(Bytes::len).sum());
            written.position = last;
        }
        if large.is_empty()
            && let Some((last, messages)) = link.try_take_large()
        {
            large.add(LARGE_MESSAGES, frame_body(node, last, messages));
            large_written.position = std::mem::replace(&mut large_last, last);
        }
        if !large.is_empty() {
            let (count, garbage) = large.write_piece(writer).await.map_err(text)?;
            node.discard(garbage);
            link.note_written(large_written, count);
            tokio::task::yield_now().await;
        } else if is_idle {
            writer.flush().await.map_err(text)?;
            link.appended().await;
        }
        writer.flush().await.map_err(text)?;
    }
}

fn frame_body(node: &Node, last: u64, mut messages: Rope) -> VecDeque<Bytes> {
    let mut header = BytesMut::with_capacity(HEADER_BYTES);
    // Read after the messages were taken: not older than any map that made this node say them.
    header.put_u64(node.speaking_epoch().0);
    header.put_u64(last);
    let mut pieces = messages.take_pieces();
    pieces.push_front(header.freeze());
    pieces
}

async fn read_answers(node: &Arc<Node>, link: &Arc<Link>, reader: &mut FrameReader) -> Result<(), String> {
    while let Some(frame) = reader.read().await.map_err(|error| error.to_string())? {
        link.note_heard();
        let (acknowledged, compared) =
            message::decode_answer(&frame.body).map_err(|error| error.to_string())?;
        let has_compared = !compared.is_empty();
        for answer in compared {
            node.compared(link, answer);
        }
        link.acknowledge(acknowledged).map_err(|error| error.to_string())?;
        if has_compared {
            node.notify_changed();
        }
    }
    Ok(())
}

/// The connections on which this node follows others: the latest of each peer.
///
/// A peer that dials anew has given up its earlier connection, but what it said there may still lie in
/// this node's buffers. Applied after the first answer on the new one it would undo newer states; so from
/// then on nothing of it is.
#[derive(Default)]
pub struct Sources {
    latest: Mutex<HashMap<NodeId, Arc<AtomicBool>>>,
}

/// One connection's turn as its peer's latest.
pub struct Turn {
    is_over: Arc<AtomicBool>,
}

impl Sources {
    /// A connection of `peer` was accepted: the earlier one is over.
    pub fn begin(&self, peer: NodeId) -> Turn {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(previous) = latest.insert(peer, Arc::clone(&is_over)) {
            previous.store(true, Ordering::SeqCst);
        }
        Turn { is_over }
    }
}

impl Turn {
    /// To be asked under the lock of the partition that is to be changed.
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

/// Serves the other end: applies what the peer, as a primary, says, and acknowledges it.
pub async fn follow(node: Arc<Node>, mut connection: PeerConnection, turn: Turn) {
    let sender = connection.peer.node;
    if let Err(reason) = follow_frames(&node, &mut connection, &turn).await {
        tracing::info!(peer = ?sender, %reason, "stopped following a peer's stream");
    }
    node.suspect(sender, connection.peer.incarnation);
}

async fn follow_frames(node: &Arc<Node>, connection: &mut PeerConnection, turn: &Turn) -> Result<(), String> {
    let sender = connection.peer.node;
    let text = |error: crate::net::peer::PeerError| error.to_string();
    let mut last = Acknowledged::default();
    while let Some(first) = connection.reader.read().await.map_err(text)? {
        let mut compared = Vec::new();
        let mut next = Some(first);
        // Frames that are already here are acknowledged together.
        while let Some(frame) = next {
            if frame.kind != MESSAGES && frame.kind != LARGE_MESSAGES {
                return Err(format!("unexpected frame of kind {}", frame.kind));
            }
            let applied = {
                let applying = apply_frame(node, sender, turn, frame.body, &mut compared);
                tokio::pin!(applying);
                loop {
                    tokio::select! {
                        biased;
                        applied = &mut applying => break applied?,
                        () = tokio::time::sleep(SIGN_OF_LIFE) => {
                            let nothing_new: BytesMut = message::encode_answer(last, &[]);
                            connection.writer.send(ANSWER, &nothing_new).await.map_err(text)?;
                        }
                    }
                }
            };
            let lane = if frame.kind == MESSAGES { &mut last.small } else { &mut last.large };
            *lane = applied;
            next = connection.reader.buffered().map_err(text)?;
        }
        let answer: BytesMut = message::encode_answer(last, &compared);
        connection.writer.send(ANSWER, &answer).await.map_err(text)?;
    }
    Ok(())
}

async fn apply_frame(
    node: &Arc<Node>,
    sender: NodeId,
    turn: &Turn,
    body: Bytes,
    compared: &mut Vec<Compared>,
) -> Result<u64, String> {
    let mut input = &body[..];
    // One that came in pieces is an allocation of its own.
    let mut source = if body.len() > PIECE_BYTES { Source::of(body.clone()) } else { Source::none() };
    let header = (input.try_get_u64(), input.try_get_u64());
    let (Ok(epoch), Ok(last)) = header else { return Err("truncated frame".into()) };
    node.reached(Epoch(epoch), MAP_WAIT).await.ok_or("this node's map does not follow")?;
    let mut view = node.view();
    let mut left_before_pause = APPLY_BYTES;
    let mut garbage = Garbage::default();
    while !input.is_empty() {
        let before = input.len();
        let message = message::decode(&mut input).map_err(|error| error.to_string())?;
        if u32::from(message.partition) >= view.map.partitions {
            return Err("no such partition".into());
        }
        // A primary speaks as soon as it takes its role, before its own map is in force for routing.
        if message.era > view.map.epoch {
            node.reached(message.era, MAP_WAIT).await.ok_or("this node's map does not follow")?;
            view = node.view();
        }
        let row = view.row(message.partition);
        if input.len() < before.saturating_sub(PIECE_BYTES) {
            let ranges: Vec<_> = replica::strings(&message)
                .into_iter()
                .filter_map(|string| source.position(string).map(|at| at..at + string.len()))
                .collect();
            source.copy_out(ranges.into_iter()).await;
        }
        let answer = {
            let mut partition = node.store().lock(message.partition);
            if turn.is_over() {
                return Err("the peer has opened a newer connection".into());
            }
            replica::receive(&mut partition, node.id(), sender, row, &message, &source, &mut garbage)
        };
        compared.extend(answer.map_err(|error| error.to_string())?);
        let used = before - input.len();
        left_before_pause = left_before_pause.saturating_sub(used);
        if left_before_pause == 0 {
            left_before_pause = APPLY_BYTES;
            tokio::task::yield_now().await;
        }
    }
    drop(source);
    garbage.add_buffer(body);
    node.discard(garbage);
    Ok(last)
}
