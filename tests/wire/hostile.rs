//! Clients that mean no good, or know no better: the node answers or closes, others notice nothing, memory is bounded.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use korum_tests::harness::cluster::resident_bytes;
use korum_tests::harness::resp::encode;
use korum_tests::harness::server::Server;
use korum_tests::harness::{alone, setting, wait};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How much more memory a node may hold while a test of this file goes on, bytes.
const GROWTH_BYTES_MAX: u64 = 256 << 20;

/// Fails when the node (if it is our own) grew by more than the bound.
struct MemoryBound {
    pid: Option<u32>,
    before: u64,
}

impl MemoryBound {
    fn of(server: &Server) -> Self {
        let pid = server.pid();
        Self { pid, before: pid.map_or(0, resident_bytes) }
    }

    fn check(&self, when: &str) {
        if let Some(pid) = self.pid {
            let growth = resident_bytes(pid).saturating_sub(self.before);
            assert!(growth < GROWTH_BYTES_MAX, "{when}: the node grew by {} MiB", growth >> 20);
        }
    }
}

/// A small generator, so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 29)
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 40) as u8).collect()
    }
}

fn open(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).expect("the server accepts");
    stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    stream
}

#[test]
fn random_bytes_do_no_harm() {
    let server = Server::start();
    let bound = MemoryBound::of(&server);
    for seed in 0..setting("KORUM_TEST_HOSTILE_ROUNDS", 300) {
        let mut random = Random(seed);
        let size = 1 + random.next() as usize % 4_000;
        let mut bytes = random.bytes(size);
        match seed % 3 {
            0 => {}
            1 => bytes.splice(..0, format!("*{}\r\n", random.next() % 70).into_bytes()).for_each(drop),
            _ => {
                // a valid request with some bytes changed
                bytes = encode(&[b"SET", b"key", &bytes]);
                for _ in 0..3 {
                    let at = random.next() as usize % bytes.len().min(40);
                    bytes[at] = random.next() as u8;
                }
            }
        }
        let mut stream = open(&server);
        let _ = stream.write_all(&bytes);
        let _ = stream.read(&mut [0; 512]);
    }
    server.assert_answers();
    bound.check("after random bytes");
}

#[test]
fn truncated_requests_do_no_harm() {
    let server = Server::start();
    let bound = MemoryBound::of(&server);
    let request = encode(&[b"SET", b"truncated", b"a value of some length"]);
    for end in 0..request.len() {
        let mut stream = open(&server);
        stream.write_all(&request[..end]).expect("written");
        stream.shutdown(std::net::Shutdown::Write).expect("half closed");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        assert!(ended.is_ok_and(|count| count == 0), "cut at {end}: {:?}", String::from_utf8_lossy(&answer));
    }
    server.assert_answers();
    bound.check("after truncated requests");
}

#[test]
fn announced_sizes_take_no_memory() {
    let _alone = alone();
    let server = Server::start();
    let bound = MemoryBound::of(&server);
    let mut open_streams = Vec::new();
    for number in 0..100 {
        for request in [
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nabc".to_vec(), // a value that never comes
            b"*1048576\r\n$4\r\nMGET\r\n".to_vec(),                      // arguments that never come
            b"*1048576\r\n".to_vec(),
        ] {
            let mut stream = open(&server);
            stream.write_all(&request).expect("written");
            open_streams.push(stream);
        }
        if number % 25 == 0 {
            server.assert_answers();
        }
    }
    server.assert_answers();
    bound.check("with 300 announced giants");
}

#[test]
fn a_client_that_never_reads_is_bounded() {
    let _alone = alone();
    let server = Server::start();
    let bound = MemoryBound::of(&server);
    let value = vec![b'x'; 1 << 20];
    assert!(server.connect().call_bytes(&[b"SET", b"unread", &value]).expect("SET").is_ok());
    let request = encode(&[b"GET", b"unread"]).repeat(100);
    let begin = Instant::now();
    let mut streams: Vec<TcpStream> = (0..4).map(|_| open(&server)).collect();
    // 4 clients ask for gigabytes and read nothing, until the node takes no more or closes
    let mut sent = 0_u64;
    'asking: for _ in 0..100 {
        for stream in &mut streams {
            if stream.write_all(&request).is_err() {
                break 'asking;
            }
            sent += 100;
        }
        if begin.elapsed() > Duration::from_secs(10) {
            break;
        }
        bound.check(&format!("after {sent} unread megabytes"));
    }
    server.assert_answers();
    bound.check("with clients that never read");
    drop(streams);
    assert_eq!(server.connect().call("DEL unread").expect("DEL").integer(), Some(1));
}

#[test]
fn idle_connections_are_cheap() {
    let _alone = alone();
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = setting("KORUM_TEST_IDLE", 10_000).min(allowed.saturating_sub(500));
    // after the limit was raised, which it inherits
    let server = Server::start_with(&["--maxclients", "12000"]);
    let bound = MemoryBound::of(&server);

    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(TcpStream::connect(server.address()).expect("the server accepts"));
    }
    server.assert_answers();
    bound.check(&format!("with {count} idle connections"));

    // each of them still works
    for stream in streams.iter_mut().step_by(97) {
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        stream.write_all(b"PING\r\n").expect("written");
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).expect("an idle connection is answered");
        assert_eq!(&answer, b"+PONG\r\n");
    }
    drop(streams);
    wait::until("connections are forgotten", Duration::from_secs(10), || {
        let text = server.connect().call("INFO clients").map_err(|error| error.to_string())?.text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("connected_clients:"))
            .unwrap_or("none")
            .to_owned();
        if line.parse::<u64>().is_ok_and(|left| left < 50) {
            Ok(())
        } else {
            Err(format!("connected_clients:{line}"))
        }
    });
}
