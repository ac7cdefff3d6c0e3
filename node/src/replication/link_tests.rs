//! Lanes, positions and who is woken.

use std::sync::Arc;

use bytes::Bytes;
use korum_protocol::id::Epoch;

use super::super::message::Body;
use super::super::primary::Waits;
use super::*;

fn link() -> Link {
    Link::new(NodeId(1), Incarnation(1))
}

/// Appends a message of about `bytes` bytes about a partition.
fn append(link: &Link, partition: PartitionId, bytes: usize) -> Place {
    let mut rope = Rope::new();
    rope.push(Bytes::from(vec![0; bytes]));
    link.append(&Message { partition, era: Epoch(1), body: Body::Passing { bytes: &rope } })
}

fn at(lane: Lane, position: u64) -> Place {
    Place { lane, position }
}

fn small(position: u64) -> Acknowledged {
    Acknowledged { small: position, large: 0 }
}

#[tokio::test]
async fn waiters_are_released_by_position() {
    let link = link();
    let (first, second) = (append(&link, 0, 1), append(&link, 0, 1));
    assert_eq!((first, second), (at(Lane::Small, 1), at(Lane::Small, 2)));
    let too_early = NotSent { lane: Lane::Small, position: 1 };
    assert_eq!(link.acknowledge(small(1)), Err(too_early), "nothing was taken yet");
    assert!(link.try_take().is_some());
    assert_eq!(link.acknowledge(small(1)), Ok(()));
    assert_eq!(link.wait(first, link.rechecks()).await, Ok(()));
    let waited = tokio::join!(link.wait(second, link.rechecks()), async { link.acknowledge(small(2)) });
    assert_eq!(waited, (Ok(()), Ok(())));
    assert!(link.acknowledge(small(u64::MAX)).is_err());
    assert!(link.acknowledge(Acknowledged { small: 2, large: 1 }).is_err());
    assert_eq!(link.acknowledged(), small(2));
}

#[tokio::test]
async fn a_broken_link_tells_its_waiters_but_keeps_what_was_acknowledged() {
    let link = link();
    let first = append(&link, 0, 1);
    assert!(link.try_take().is_some());
    let (second, large) = (append(&link, 0, 1), append(&link, 0, LARGE_BYTES));
    assert_eq!(link.acknowledge(small(1)), Ok(()));
    let waited = tokio::join!(link.wait(second, link.rechecks()), link.wait(large, link.rechecks()), async {
        link.break_off()
    });
    assert_eq!((waited.0, waited.1), (Err(Broken), Err(Broken)));
    assert_eq!(link.wait(first, link.rechecks()).await, Ok(()));
    assert_eq!(link.wait(second, link.rechecks()).await, Err(Broken));
    assert!(!link.has_acknowledged(append(&link, 0, LARGE_BYTES)), "it goes nowhere");
}

#[test]
fn taking_gives_everything_and_the_last_position() {
    let link = link();
    append(&link, 0, 1);
    append(&link, 1, 1);
    let pending = link.pending_bytes();
    let (last, messages) = link.try_take().unwrap();
    assert_eq!((last, messages.len()), (2, pending));
    assert_eq!((link.pending_bytes(), link.unacknowledged()), (0, 2));
}

#[test]
fn a_frame_holds_at_most_one_message_beyond_its_bound() {
    let link = Link::with_large_bytes(NodeId(1), Incarnation(1), usize::MAX);
    for size in [FRAME_BYTES - 100, 3 * FRAME_BYTES, 10, 10] {
        append(&link, 0, size);
    }
    let frames: Vec<_> =
        std::iter::from_fn(|| link.try_take()).map(|(last, it)| (last, it.len() > FRAME_BYTES)).collect();
    assert_eq!(frames, [(2, true), (4, false)]);
    assert_eq!(link.pending_bytes(), 0);
}

#[test]
fn what_follows_a_large_message_of_its_partition_does_not_overtake_it() {
    let link = link();
    let places = [(7, LARGE_BYTES), (8, 1), (7, 1)].map(|(id, bytes)| append(&link, id, bytes));
    assert_eq!(places, [at(Lane::Large, 1), at(Lane::Small, 1), at(Lane::Large, 2)]);
    assert_eq!(link.lane_after(places[2]), Lane::Large);
    assert!(link.try_take_large().is_none(), "a small message was appended before the last of them");
    assert_eq!(link.try_take().unwrap().0, 1);
    let next = append(&link, 8, LARGE_BYTES);
    assert_eq!(link.try_take_large().unwrap().0, 3);
    // The large lane knows nothing of what is acknowledged in the other.
    assert_eq!(link.acknowledge(Acknowledged { small: 1, large: 1 }), Ok(()));
    assert!(link.has_acknowledged(places[0]) && !link.has_acknowledged(places[2]));
    assert_eq!(append(&link, 7, 1).lane, Lane::Large);
    assert_eq!(link.try_take_large().unwrap().0, 4);
    assert_eq!(link.acknowledge(Acknowledged { small: 1, large: 4 }), Ok(()));
    assert!(link.is_settled() && link.has_acknowledged(next));
    assert_eq!((append(&link, 7, 1).lane, append(&link, 8, 1).lane), (Lane::Small, Lane::Small));
}

#[test]
fn a_large_message_waits_for_the_small_ones_before_it_and_for_no_others() {
    let link = link();
    append(&link, 7, 1);
    append(&link, 7, LARGE_BYTES);
    assert!(link.try_take_large().is_none());
    assert_eq!(link.try_take().unwrap().0, 1);
    append(&link, 8, 1);
    assert_eq!(link.try_take_large().unwrap().0, 1);
}

#[test]
fn a_lane_that_is_full_leaves_the_other_free() {
    let link = link();
    append(&link, 7, OUTBOX_BYTES_MAX);
    assert!(link.is_full(Lane::Large) && !link.is_full(Lane::Small));
    assert!(link.try_take_large().is_some());
    assert!(!link.is_full(Lane::Large));
}

#[tokio::test]
async fn acknowledgements_count_although_they_are_not_asked_for_any_more() {
    let link = Arc::new(link());
    let place = append(&link, 0, 1);
    assert!(link.try_take().is_some());
    let mut waits = Waits::default();
    waits.add(&link, place);
    let (is_known, ()) = tokio::join!(waits.all(), async { link.recheck() });
    assert!(!is_known, "whoever waits looks again");
    let (is_kept, ()) = tokio::join!(waits.acknowledged(), async {
        link.recheck();
        tokio::task::yield_now().await;
        assert_eq!(link.acknowledge(small(1)), Ok(()));
    });
    assert!(is_kept);
    waits.add(&link, at(Lane::Small, 2));
    let (is_kept, ()) = tokio::join!(waits.acknowledged(), async { link.break_off() });
    assert!(!is_kept);
}

#[test]
fn bytes_behind_what_is_owed_are_no_progress() {
    let link = link();
    let send = |before| {
        let last = append(&link, 0, 1);
        assert!(link.try_take().is_some());
        link.note_written(before, 1);
        last
    };
    let fresh = link.progress();
    let first = send(at(Lane::Small, 0));
    let owed = link.progress();
    assert_ne!(fresh, owed, "the first one is under way");
    let second = send(first);
    assert_eq!(link.progress(), owed, "a silent peer stays silent, however much its socket takes");
    assert_eq!(link.acknowledge(small(second.position)), Ok(()));
    let acknowledged = link.progress();
    assert_ne!(acknowledged, owed);
    send(second);
    assert_ne!(link.progress(), acknowledged);
}

#[tokio::test]
async fn a_recheck_before_the_wait_begins_is_not_missed() {
    let link = link();
    let place = append(&link, 0, 1);
    let before = link.rechecks();
    link.recheck();
    let waited = tokio::time::timeout(std::time::Duration::from_secs(5), link.wait(place, before));
    assert_eq!(waited.await, Ok(Err(Broken)));
    let (waited, ()) = tokio::join!(link.wait(place, link.rechecks()), async { link.recheck() });
    assert_eq!(waited, Err(Broken));
}
