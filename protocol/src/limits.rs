//! Every limit of the wire, with its unit and its reason.
//!
//! For: bounding what a peer or a client may make us read, hold or allocate.
//! Not here: limits that an operator sets (those are in the node's `config`).

/// Longest bulk string of a request, bytes. Redis' `proto-max-bulk-len` default.
pub const BULK_BYTES_MAX: usize = 512 << 20;
/// Longest key, bytes: a message that carries two keys and the longest value fits in a data frame. (Redis
/// allows 512 MB; longer keys than this are refused.)
pub const KEY_BYTES_MAX: usize = 16 << 20;
/// Most arguments of one request. Redis' limit of a multibulk header.
pub const ARGUMENTS_MAX: usize = 1 << 20;
/// Longest inline command or header line, bytes. Redis' `PROTO_INLINE_MAX_SIZE`.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Most unparsed bytes that a connection may hold, bytes. Redis' `client-query-buffer-limit`.
pub const QUERY_BUFFER_BYTES_MAX: usize = 1 << 30;
/// Deepest nesting of a reply that the client side decodes. Korum's own replies use at most 6.
pub const REPLY_DEPTH_MAX: usize = 32;
/// Longest reply that the client side holds, bytes: as much as a node holds of a request.
pub const REPLY_BYTES_MAX: usize = 1 << 30;
/// Most values in one reply of the client side: 40 bytes each in memory, so 1.3 GB at the worst.
pub const REPLY_ELEMENTS_MAX: u64 = 1 << 25;
/// Longest control frame between nodes (Raft, heartbeats, join), bytes: a snapshot of the map
/// with 16384 exceptions fits several times.
pub const CONTROL_FRAME_BYTES_MAX: usize = 16 << 20;
/// Longest data frame between nodes (effects, streams, forwards), bytes: the longest bulk of a
/// request, its key and the headers.
pub const DATA_FRAME_BYTES_MAX: usize = BULK_BYTES_MAX + (64 << 20);
/// Longest request in all, bytes: with a batch of smaller ones before it, it fits in a data frame, so it
/// can be forwarded and replicated.
pub const REQUEST_BYTES_MAX: usize = DATA_FRAME_BYTES_MAX - (32 << 20);
/// Most nodes that hold one partition.
pub const REPLICATION_MAX: u8 = 8;
