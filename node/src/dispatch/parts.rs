//! What a batch is made of: commands with their replies, tasks, and operations that have to be settled.
//!
//! For: the types that `batch`, `split`, `everywhere`, `finish` and `assemble` share.
//! Not here: what is done with them.

use std::ops::Range;

use bytes::Bytes;
use korum_protocol::command::{CommandId, CommandSpec};
use korum_protocol::id::Position;
use korum_protocol::map::PartitionId;
use korum_protocol::rope::{Mark, Rope};
use smallvec::SmallVec;

use super::caller::Caller;

/// Where a command's reply starts, and how it is made of its tasks' replies.
pub(super) struct CommandReply {
    pub start: Mark,
    pub request: Range<usize>,
    pub caller: Caller,
    pub combine: Combine,
    pub failure: Option<Failure>,
    /// Its reply is thrown away.
    pub is_muted: bool,
    /// What it counts for.
    pub counted: Counted,
}

impl CommandReply {
    /// A failure that may hide a write outweighs one that does not.
    pub fn fail(&mut self, failure: Failure) {
        if self.failure != Some(Failure::Unknown) {
            self.failure = Some(failure);
        }
    }
}

/// What a command counts for in the statistics of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counted {
    /// Not at all: it is unknown, or only queued, or somebody else counts it.
    Nothing,
    /// A call.
    Call {
        id: CommandId,
        /// How long it took, if it was measured.
        nanos: Option<u64>,
    },
    /// A call that was refused before it was run.
    Refusal(CommandId),
}

/// How a command's reply is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Combine {
    /// What is in `out`, with the tasks' replies in their places.
    InPlace,
    /// The sum of what was counted here and the tasks' integers.
    Sum(i64),
    /// `OK` when all tasks say so.
    AllOk,
    /// One array of all the tasks' elements.
    Concat,
    /// A scan's cursor and keys: up to and including the first partition that has more.
    Scan {
        /// No partition comes after the last task's.
        is_last: bool,
    },
    /// The first task's reply that is not null, from the one with this number on.
    Any(usize),
}

/// Why a command has no reply of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// It may or may not have been done.
    Unknown,
    /// It was not done, and nobody can do it now.
    Down,
    /// It only read, and what it read may be outdated: to be run again.
    Again,
}

/// A command, or a part of one, that does not run here and now.
pub(super) struct Task {
    pub command: usize,
    /// Where in `out` its reply belongs.
    pub at: Mark,
    /// The reply is an array of one, of which the element is wanted.
    pub is_element: bool,
    pub request: TaskRequest,
    pub spec: &'static CommandSpec,
    pub partition: PartitionId,
    pub state: TaskState,
}

/// The bytes of a task's request.
pub(super) enum TaskRequest {
    /// The command as it came in.
    Whole,
    /// A part of a split command, as a request of its own.
    Part(Bytes),
    /// A part of a split command that is long: where its arguments stand in the batch's input.
    Words(SmallVec<[Range<usize>; 3]>),
}

/// How far a task is.
#[derive(PartialEq, Eq)]
pub(super) enum TaskState {
    /// To be run or sent.
    Pending,
    /// On its way.
    Sent,
    /// Its reply.
    Done(Rope),
    /// Its command has failed.
    Failed,
}

/// Something that was executed here and must be settled before it is answered.
pub(super) struct Operation {
    pub command: usize,
    pub partition: PartitionId,
    /// Where the partition stood after it.
    pub position: Position,
    pub is_write: bool,
}

/// Where the reply of a local execution goes.
#[derive(Clone, Copy)]
pub(super) enum Into {
    Out,
    Scratch,
}
