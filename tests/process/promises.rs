//! What a connection may choose: weaker writes, `WAIT`, reads from copies.

use std::time::{Duration, Instant};

use korum_tests::harness::cluster::Cluster;
use korum_tests::harness::resp::Reply;
use korum_tests::harness::{alone, wait};

#[test]
fn writes_wait_for_copies_unless_told_otherwise() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    for index in 0..3 {
        let mut client = cluster.client(index);
        let mut ask = |words: &str| client.call(words).expect("a reply");
        assert_eq!(ask("KORUM CONSISTENCY"), Reply::from("strong"));
        assert_eq!(ask("WAIT 1 1000"), Reply::Integer(1), "every partition has a second copy");
        assert!(ask("KORUM CONSISTENCY async").is_ok());
        for number in 0..50 {
            assert!(ask(&format!("SET key:{number} {index}")).is_ok());
        }
        assert_eq!(ask("WAIT 1 2000"), Reply::Integer(1));
        let begin = Instant::now();
        assert_eq!(ask("WAIT 2 100"), Reply::Integer(1), "there is no third copy");
        assert!(begin.elapsed() >= Duration::from_millis(100));
        assert!(ask("KORUM CONSISTENCY strong").is_ok());
        assert_eq!(ask("GET key:7"), Reply::from(&*index.to_string()));
    }
    let flags = ["--consistency", "async"];
    let other = Cluster::start_with(1, &flags);
    assert_eq!(other.client(0).call("KORUM CONSISTENCY").expect("a word"), Reply::from("async"));
}

#[test]
fn a_weak_write_does_not_wait_for_a_copy_that_sleeps() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    let mut client = cluster.client(0);
    let mut ask = |words: &str| client.call(words).expect("a reply");
    let mut copies = cluster.cluster_port(1);
    assert!(copies.call("READONLY").expect("READONLY").is_ok());
    let key = (0..).map(|number| format!("key:{number}")).find(|key| {
        assert!(ask(&format!("SET {key} 0")).is_ok());
        let on_the_other = copies.call(&format!("EXISTS {key}")).expect("EXISTS");
        cluster.primary_of(key) == 0 && on_the_other == Reply::Integer(1)
    });
    let key = key.expect("node 0 is primary of some key whose copy is on node 1");
    assert!(ask(&format!("SET {key} 1")).is_ok());
    assert!(ask("KORUM CONSISTENCY async").is_ok());
    cluster.pause(1);
    let begin = Instant::now();
    assert!(ask(&format!("SET {key} 2")).is_ok());
    assert!(begin.elapsed() < Duration::from_millis(100), "{:?}", begin.elapsed());
    assert_eq!(ask("WAIT 1 50"), Reply::Integer(0), "the copy has not told that it has it");
    cluster.resume(1);
    assert_eq!(ask("WAIT 1 10000"), Reply::Integer(1));
}

#[test]
fn copies_answer_reads_of_those_who_take_older_values() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    let mut writer = cluster.client(0);
    for number in 0..40 {
        assert!(writer.call(&format!("SET key:{number} {number} PX 60000")).expect("SET").is_ok());
    }
    assert!(writer.call("SET brief x PX 150").expect("SET").is_ok());
    for index in 0..3 {
        let mut port = cluster.cluster_port(index);
        let mut client = cluster.client(index);
        let mut served = 0;
        assert!(port.call("READONLY").expect("READONLY").is_ok());
        assert!(client.call("READONLY").expect("READONLY").is_ok(), "it changes nothing there");
        for number in 0..40 {
            let is_primary = cluster.primary_of(&format!("key:{number}")) == index;
            let reply = port.call(&format!("GET key:{number}")).expect("GET");
            let is_served = reply == Reply::from(&*number.to_string());
            assert!(is_served || reply.error().is_some_and(|text| text.starts_with("MOVED ")), "{reply:?}");
            served += usize::from(is_served && !is_primary);
            // Only reads are served by copies.
            let written = port.call(&format!("PEXPIRE key:{number} 60000")).expect("PEXPIRE");
            assert_eq!(written == Reply::Integer(1), is_primary, "{written:?}");
            assert_eq!(
                client.call(&format!("GET key:{number}")).expect("GET"),
                Reply::from(&*number.to_string())
            );
        }
        assert!(served > 3, "node {index} served {served} keys as a copy");
        wait::until("the brief key is hidden when it has expired", Duration::from_secs(5), || {
            let brief = port.call("GET brief").expect("GET");
            if brief == Reply::Null || brief.error().is_some() { Ok(()) } else { Err(format!("{brief:?}")) }
        });
        assert!(port.call("READWRITE").expect("READWRITE").is_ok());
        let moved =
            (0..40).filter(|number| port.call(&format!("GET key:{number}")).expect("GET").error().is_some());
        assert!(moved.count() > 3);
    }
}
