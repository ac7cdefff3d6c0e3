//! Which waiting commands of other nodes' clients have been served.
//!
//! For: a node that lost the connection on which it waited asks here whether the answer was lost with it.
//! Not here: waiting (`waiting`), asking (`dispatch::blocking`).
//!
//! It goes the way of all effects, so whoever is the primary next knows. A client waits in one command at a time: its
//! last one is all that is kept.

use std::collections::{HashMap, VecDeque};

use super::collection::Keyed;

/// Clients of which the last command is kept, per partition. A node asks within about a second, as soon as its
/// connection breaks; and only a partition in which so many clients have waited ever keeps so many.
const CLIENTS_MAX: usize = 16_384;

/// A waiting command of a client of another node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token {
    /// The client's node.
    pub node: u64,
    /// The client, as that node counts.
    pub client: u64,
    /// The command: a number by chance.
    pub number: u64,
}

/// The last served command of each client.
#[derive(Clone, Debug, Default)]
pub struct Served {
    last: HashMap<(u64, u64), u64, Keyed>,
    order: VecDeque<Token>,
}

impl Served {
    /// This command has been served.
    pub fn note(&mut self, token: Token) {
        self.last.insert((token.node, token.client), token.number);
        self.order.push_back(token);
        while self.order.len() > CLIENTS_MAX {
            let Some(old) = self.order.pop_front() else { break };
            if self.last.get(&(old.node, old.client)) == Some(&old.number) {
                self.last.remove(&(old.node, old.client));
            }
        }
    }

    /// Has this command been served?
    #[must_use]
    pub fn has(&self, token: Token) -> bool {
        self.last.get(&(token.node, token.client)) == Some(&token.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_command_of_each_client_is_known() {
        let mut served = Served::default();
        let token = |client, number| Token { node: 1, client, number };
        served.note(token(1, 10));
        served.note(token(2, 20));
        served.note(token(1, 11));
        assert!(!served.has(token(1, 10)) && served.has(token(1, 11)) && served.has(token(2, 20)));
        assert!(!served.has(Token { node: 2, client: 1, number: 11 }));
        for client in 3..3 + CLIENTS_MAX as u64 {
            served.note(token(client, 1));
        }
        assert!(!served.has(token(1, 11)) && !served.has(token(2, 20)) && served.has(token(3, 1)));
        assert_eq!((served.last.len(), served.order.len()), (CLIENTS_MAX, CLIENTS_MAX));
    }
}
