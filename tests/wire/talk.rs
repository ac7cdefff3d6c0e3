//! Lines of words to one node, and its answer as text.
//!
//! For: suites whose answers come in several pieces, or unasked.

use korum_tests::harness::resp::encode;
use korum_tests::harness::server::Server;

/// The requests of these lines, one after the other.
pub fn lines(text: &str) -> Vec<u8> {
    text.lines().flat_map(|line| encode(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())).collect()
}

/// Sends lines in one write; the answer as far as it is expected, with `|` for line ends.
pub fn talk(server: &Server, text: &str, expected: &str) -> String {
    let mut client = server.connect();
    client.send(&lines(text)).expect("sent");
    let (mut bytes, mut said) = (Vec::new(), String::new());
    while said != expected
        && said.len() <= expected.len()
        && let Ok(next) = client.exactly(1)
    {
        bytes.extend(next);
        said = String::from_utf8_lossy(&bytes).replace("\r\n", "|");
    }
    said
}
