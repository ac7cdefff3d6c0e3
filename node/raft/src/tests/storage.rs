//! openraft's own storage suite on our store, and what a damaged directory does.

use std::sync::Arc;

use openraft::StorageError;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use openraft::testing::{StoreBuilder, Suite};
use proptest::prelude::*;

use super::super::files::Directory;
use super::super::journal::Log;
use super::super::log_file::LogFile;
use super::super::log_store::LogStore;
use super::super::state_machine::StateMachine;
use super::super::types::TypeConfig;
use super::super::writer::Writer;
use super::*;

struct Builder;

impl StoreBuilder<TypeConfig, LogStore, StateMachine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, StateMachine), StorageError<u64>> {
        let home = TempDir::new().expect("a temporary directory");
        let directory = Directory::open(home.path()).expect("opens");
        let (log, file) = directory.open_log().expect("opens");
        let (vote, vote_file) = directory.open_vote().expect("opens");
        let (writer, _thread) = Writer::start(directory, file, vote_file, None).expect("starts");
        let machine =
            StateMachine::new(None, tokio::sync::watch::channel(None).0, writer.clone()).expect("is new");
        Ok((home, LogStore::new(log, vote, writer), machine))
    }
}

#[test]
fn openraft_suite_passes() {
    Suite::test_all(Builder).expect("passes");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A directory as a node leaves it: a log of some changes, a vote.
fn lived_in() -> (TempDir, Vec<(&'static str, Vec<u8>)>) {
    let home = TempDir::new().unwrap();
    runtime().block_on(async {
        let node = start(&Arc::default(), home.path(), 1).await;
        node.create(address_of(NodeId(1)), creation(1)).await.unwrap();
        for round in 0..5 {
            node.propose(setting("round", &round.to_string())).await.unwrap();
        }
        node.shutdown().await;
    });
    let read = |name| (name, std::fs::read(home.path().join("1/raft").join(name)).unwrap());
    let files = vec![read("log"), read("vote")];
    (home, files)
}

#[test]
fn a_damaged_directory_opens_with_an_older_state_or_is_refused() {
    let (_home, files) = lived_in();
    proptest!(ProptestConfig::with_cases(24), |(
        which in 0..2usize, at in any::<prop::sample::Index>(), flip in 0..=255u8, keep in any::<prop::sample::Index>()
    )| {
        let home = TempDir::new().unwrap();
        let dir = home.path().join("1/raft");
        std::fs::create_dir_all(&dir).unwrap();
        for (index, (name, bytes)) in files.iter().enumerate() {
            let mut bytes = bytes.clone();
            if index == which {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
                bytes.truncate(keep.index(bytes.len() + 1));
            }
            std::fs::write(dir.join(name), bytes).unwrap();
        }
        runtime().block_on(async {
            let link = Arc::new(Link { from: NodeId(1), net: Arc::default() });
            let Ok(node) = Consensus::open(Options::new(NodeId(1), dir.clone()), link).await else { return };
            if let Some(view) = node.views().borrow().as_deref() {
                let round = view.map.settings.get("round").map(String::as_str);
                assert!(matches!(round, None | Some("0" | "1" | "2" | "3" | "4")));
            }
            node.shutdown().await;
        });
    });
}

#[test]
fn a_log_that_is_written_anew_says_the_same_at_every_moment() {
    let home = TempDir::new().unwrap();
    let directory = Directory::open(home.path()).unwrap();
    let (log, file) = directory.open_log().unwrap();
    let (vote, vote_file) = directory.open_vote().unwrap();
    let (writer, thread) = Writer::start(directory.clone(), file, vote_file, None).unwrap();
    let mut store = LogStore::new(log, vote, writer);
    let id = |index| openraft::LogId::new(openraft::CommittedLeaderId::new(1, 1), index);
    let at = |log: &Log| log.range(.., usize::MAX).iter().map(|entry| entry.log_id.index).collect::<Vec<_>>();
    let (mut longest, mut shorter) = (0, 0);
    runtime().block_on(async {
        for index in 0..300 {
            let change = setting("a", &"x".repeat(40 << 10));
            let payload = openraft::EntryPayload::Normal(change);
            store.blocking_append([openraft::Entry { log_id: id(index), payload }]).await.unwrap();
            if index % 10 == 9 {
                store.purge(id(index - 3)).await.unwrap();
            }
            // As a process would find it that is killed now.
            let bytes = std::fs::read(home.path().join("log")).unwrap();
            let (found, _, cut) = Log::replay(&bytes);
            let kept = at(&found);
            assert_eq!(cut, None);
            assert_eq!(kept, (kept[0]..=index).collect::<Vec<_>>());
            shorter += usize::from(bytes.len() < longest);
            longest = bytes.len().max(longest);
        }
    });
    assert!(shorter > 0 && longest < 11 << 20, "the log grew to {longest} bytes");
    drop(store);
    thread.join().expect("ends when nobody can ask it any more");
    let (found, _) = directory.open_log().unwrap();
    let kept = at(&found);
    assert_eq!(kept, (kept[0]..300).collect::<Vec<_>>());
}

#[test]
fn after_a_failed_write_nothing_is_acknowledged_any_more() {
    let home = TempDir::new().unwrap();
    let directory = Directory::open(home.path()).unwrap();
    let (log, _file) = directory.open_log().unwrap();
    let (_vote, vote_file) = directory.open_vote().unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (writer, thread) = Writer::start(directory, LogFile::at(full, 0, 1 << 20), vote_file, None).unwrap();
    let mut store = LogStore::new(log, None, writer);
    runtime().block_on(async {
        let vote = openraft::Vote::new(1, 1);
        store.save_vote(&vote).await.expect("the vote has its own file");
        store
            .blocking_append([openraft::Entry::<TypeConfig>::default()])
            .await
            .expect_err("the disk is full");
        store.save_vote(&vote).await.expect_err("the log is not what Raft believes");
    });
    drop(store);
    thread.join().expect("ends when nobody can ask it any more");
}

#[test]
fn a_log_without_the_snapshot_it_needs_is_refused() {
    let home = TempDir::new().unwrap();
    let dir = home.path().join("1/raft");
    runtime().block_on(async {
        let node = start(&Arc::default(), home.path(), 1).await;
        node.create(address_of(NodeId(1)), creation(1)).await.unwrap();
        for round in 0..1_300 {
            node.propose(setting("round", &round.to_string())).await.unwrap();
        }
        node.shutdown().await;
        std::fs::remove_file(dir.join("snapshot")).unwrap();
        let link = Arc::new(Link { from: NodeId(1), net: Arc::default() });
        let error = Consensus::open(Options::new(NodeId(1), dir), link).await.err().expect("is refused");
        assert!(error.to_string().contains("snapshot"), "{error}");
    });
}
