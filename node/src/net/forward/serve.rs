//! The other end of a forward connection: runs what peers forward, and answers.
//!
//! For: batches of forwarded requests, answered as soon as each is settled; the goodbye of a node that leaves.
//! Not here: the frames' form and the sending end (`forward`).

use std::sync::Arc;

use bytes::{Buf, Bytes};
use korum_protocol::command::resolve;
use korum_protocol::id::NodeId;
use korum_protocol::peer::piece::{PIECE_BYTES, STREAMS_MAX};
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
use korum_protocol::rope::Rope;

use super::super::measure::Measure;
use super::super::peer::{Cutter, FrameWriter, PeerConnection, PeerError};
use super::waiting::Parkings;
use super::{CANCEL, GOODBYE, REPLIES, TOLD, WAITING, encode_answers, write_or_add, write_piece};
use crate::dispatch::caller::CALLER_BYTES;
use crate::dispatch::{Batch, Caller, publish, track};
use crate::env::random::random;
use crate::node::Node;
use crate::store::{Garbage, Source};

/// Batches that one peer may have waiting here for acknowledgements.
const WAITING_MAX: usize = 4096;
/// Bytes of large replies that wait for a connection before it takes more: most are shared with the store.
const LARGE_REPLIES_BYTES_MAX: usize = 1 << 30;
/// Bytes of replies after which the rest of a batch is handed back, to be sent again: what one batch may hold here.
const REPLIES_BYTES_MAX: usize = 16 << 20;

/// Serves the other end: runs what peers forward, and answers each batch as soon as it is settled.
pub async fn serve(node: Arc<Node>, connection: PeerConnection) {
    let PeerConnection { mut reader, mut writer, peer } = connection;
    let served = Arc::clone(&node);
    let number = node.clients.tracker.next_connection();
    track::greet(&node, peer.node);
    let (replies, outgoing) = tokio::sync::mpsc::channel::<Rope>(WAITING_MAX);
    let permits = Arc::new(tokio::sync::Semaphore::new(WAITING_MAX));
    let mut departure = node.departure.subscribe();
    let peer_node = peer.node;
    // Moves `replies`, so that the writer ends when everything was answered.
    let read = async move {
        let mut spare: Option<Batch> = None;
        let parkings = Parkings::new(&node, peer_node, &replies);
        loop {
            let frame = tokio::select! {
                biased;
                _ = departure.wait_for(|&departs| departs) => break,
                frame = reader.read() => frame.map_err(|error| error.to_string())?,
            };
            let Some(frame) = frame else { break };
            match frame.kind {
                WAITING => {
                    parkings.begin(frame.body)?;
                    continue;
                }
                CANCEL => {
                    parkings.cancel(frame.body)?;
                    continue;
                }
                TOLD => {
                    run_told(&node, peer.node, number, &frame.body)?;
                    continue;
                }
                _ => {}
            }
            let mut batch = spare.take().unwrap_or_else(|| Batch::new(random()));
            let body = Some(frame.body.clone());
            let id = run_frame(&node, &mut batch, frame.body, peer.node).await?;
            node.discard(body.filter(|body| body.len() > PIECE_BYTES).into_iter().collect::<Garbage>());
            batch.count_looks(&node);
            if batch.is_settled(&node) {
                for body in encode_answers(id, &batch.answers()) {
                    replies.send(body).await.map_err(|error| error.to_string())?;
                }
                spare = Some(batch);
                continue;
            }
            let permit = Arc::clone(&permits).acquire_owned().await.map_err(|error| error.to_string())?;
            let (node, replies) = (Arc::clone(&node), replies.clone());
            tokio::spawn(async move {
                let deadline = node.request_deadline();
                batch.settle_forwarded(&node, deadline).await;
                for body in encode_answers(id, &batch.answers()) {
                    // A receiver that is gone means that the connection is.
                    let _ = replies.send(body).await;
                }
                drop(permit);
            });
        }
        drop(parkings);
        let _ = permits.acquire_many(WAITING_MAX as u32).await;
        Ok::<(), String>(())
    };
    let write = write_replies(&served, outgoing, &mut writer);
    tokio::pin!(write);
    let result = tokio::select! {
        result = read => match result {
            Ok(()) => write.await,
            Err(reason) => Err(reason),
        },
        result = &mut write => result,
    };
    track::lost(&served, peer.node, number);
    if let Err(reason) = result {
        tracing::info!(peer = ?peer.node, %reason, "forward connection ended");
    }
}

/// Ends with a goodbye when nobody can reply any more.
async fn write_replies(
    node: &Node,
    mut outgoing: tokio::sync::mpsc::Receiver<Rope>,
    writer: &mut FrameWriter,
) -> Result<(), String> {
    let text = |error: PeerError| error.to_string();
    let mut large = Cutter::new(STREAMS_MAX);
    loop {
        if large.is_empty() {
            let Some(body) = outgoing.recv().await else {
                writer.write_parts(GOODBYE, &[]).await.map_err(text)?;
                return writer.flush().await.map_err(text);
            };
            write_or_add(REPLIES, body, writer, &mut large).await.map_err(text)?;
        }
        while large.pending_bytes() < LARGE_REPLIES_BYTES_MAX
            && let Ok(body) = outgoing.try_recv()
        {
            write_or_add(REPLIES, body, writer, &mut large).await.map_err(text)?;
        }
        write_piece(node, writer, &mut large).await.map_err(text)?;
    }
}

/// Does what one frame tells.
fn run_told(node: &Node, peer: NodeId, number: u64, body: &Bytes) -> Result<(), String> {
    let source = if body.len() > PIECE_BYTES { Source::of(body.clone()) } else { Source::none() };
    let mut parser = RequestParser::new(RequestLimits::unlimited());
    let mut start = 0;
    while start < body.len() {
        let Ok(Parsed::Request { consumed }) = parser.parse(&body[start..]) else {
            return Err("malformed requests".into());
        };
        let args = parser.args(&body[start..start + consumed]);
        if !publish::take_told(node, &args, &source) && !track::take_told(node, peer, number, &args) {
            return Err("a request that cannot be told".into());
        }
        start += consumed;
    }
    Ok(())
}

/// Runs one frame's requests, as far as they can run at once.
async fn run_frame(
    node: &Arc<Node>,
    batch: &mut Batch,
    mut body: Bytes,
    peer: NodeId,
) -> Result<u64, String> {
    // One that came in pieces is an allocation of its own.
    let is_large = body.len() > PIECE_BYTES;
    let id = body.try_get_u64().map_err(|error| error.to_string())?;
    let mut caller = [0; CALLER_BYTES];
    body.try_copy_to_slice(&mut caller).map_err(|error| error.to_string())?;
    let caller = Caller::forwarded(caller, peer).ok_or("unknown kind of caller")?;
    // The node that took the request in has checked it against its limits.
    let mut parser = RequestParser::new(RequestLimits::unlimited());
    let mut source = if is_large { Source::of(body.clone()) } else { Source::none() };
    let mut start = 0;
    let mut has_begun = false;
    while start < body.len() {
        match parser.parse(&body[start..]) {
            Ok(Parsed::Request { consumed }) => {
                let range = start..start + consumed;
                let args = parser.args(&body[range.clone()]);
                if consumed > PIECE_BYTES {
                    let ranges = args.ranges().iter().map(|range| start + range.start..start + range.end);
                    source.copy_out(ranges).await;
                }
                // Not before all of what is awaited: the batch reads the clock.
                if !std::mem::replace(&mut has_begun, true) {
                    batch.begin(node);
                    batch.set_source(std::mem::take(&mut source));
                }
                let view = node.view();
                batch.open(range, caller);
                if batch.reply_bytes() < REPLIES_BYTES_MAX {
                    let measure = Measure::begin(node, false);
                    batch.run_forwarded(node, &view, &args, caller);
                    let _ = measure.end(
                        node,
                        &args,
                        || resolve(&args).ok(),
                        || ("forwarded".to_owned(), String::new()),
                    );
                } else {
                    batch.hand_back();
                }
                start += consumed;
            }
            Ok(Parsed::Empty { .. } | Parsed::Incomplete) | Err(_) => return Err("malformed requests".into()),
        }
    }
    if !has_begun {
        return Err("a frame without requests".into());
    }
    batch.set_source(Source::none());
    Ok(id)
}
