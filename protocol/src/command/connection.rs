//! The connection itself: greeting, naming, tracking.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::tips;

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Connection;

    Ping "ping" -1 [FAST] [] "1.0.0" "O(1)"
        "Answers PONG or the message given" { .tips(tips::SHARDS_ALL_SUCCEED) };
    Echo "echo" 2 [LOADING STALE FAST] [] "1.0.0" "O(1)"
        "Answers the message given";
    Hello "hello" -1 [NOSCRIPT LOADING STALE FAST NO_AUTH ALLOW_BUSY] [] "6.0.0" "O(1)"
        "Greets the server and chooses the protocol version";
    Auth "auth" -2 [NOSCRIPT LOADING STALE FAST NO_AUTH ALLOW_BUSY] [] "1.0.0" "O(N) with N passwords"
        "Authenticates the connection";
    Select "select" 2 [LOADING STALE FAST] [] "1.0.0" "O(1)"
        "Changes the database of the connection";
    Quit "quit" -1 [NOSCRIPT LOADING STALE FAST NO_AUTH ALLOW_BUSY] [] "1.0.0" "O(1)"
        "Closes the connection";
    Reset "reset" 1 [NOSCRIPT LOADING STALE FAST NO_AUTH ALLOW_BUSY] [] "6.2.0" "O(1)"
        "Takes the connection back to its first state";
    Client "client" -2 [] [] "2.4.0" "Depends on the subcommand"
        "Asks and changes what the server knows of connections" { .plain().subcommands(CLIENT) };
}

commands! {
    static CLIENT: Connection;

    ClientId "client|id" 2 [NOSCRIPT LOADING STALE] [] "5.0.0" "O(1)"
        "Returns the id of this connection";
    ClientInfo "client|info" 2 [NOSCRIPT LOADING STALE] [] "6.2.0" "O(1)"
        "Describes this connection" { .tips(tips::UNSTABLE) };
    ClientList "client|list" -2 [ADMIN NOSCRIPT LOADING STALE] [] "2.4.0" "O(N) with N connections"
        "Describes all connections" { .tips(tips::UNSTABLE) };
    ClientSetname "client|setname" 3 [NOSCRIPT LOADING STALE] [] "2.6.9" "O(1)"
        "Names this connection";
    ClientGetname "client|getname" 2 [NOSCRIPT LOADING STALE] [] "2.6.9" "O(1)"
        "Returns the name of this connection";
    ClientSetinfo "client|setinfo" 4 [NOSCRIPT LOADING STALE] [] "7.2.0" "O(1)"
        "Tells which client library uses this connection" { .tips(tips::NODES_ALL_SUCCEED) };
    ClientKill "client|kill" -3 [ADMIN NOSCRIPT LOADING STALE] [] "2.4.0" "O(N) with N connections"
        "Closes connections";
    ClientNoEvict "client|no-evict" 3 [ADMIN NOSCRIPT LOADING STALE] [] "7.0.0" "O(1)"
        "Exempts this connection from being closed when memory is short";
    ClientNoTouch "client|no-touch" 3 [NOSCRIPT LOADING STALE] [] "7.2.0" "O(1)"
        "Lets commands of this connection leave the use of keys unmarked";
    ClientReply "client|reply" 3 [NOSCRIPT LOADING STALE] [] "3.2.0" "O(1)"
        "Switches the replies on this connection off and on";
    ClientPause "client|pause" -3 [ADMIN NOSCRIPT LOADING STALE] [] "2.9.50" "O(1)"
        "Holds back commands of clients for some time";
    ClientUnpause "client|unpause" 2 [ADMIN NOSCRIPT LOADING STALE] [] "6.2.0" "O(N) with N clients that wait"
        "Lets held back clients go on";
    ClientUnblock "client|unblock" -3 [ADMIN NOSCRIPT LOADING STALE] [] "5.0.0" "O(log N) with N connections"
        "Wakes a client that a command blocks";
    ClientTracking "client|tracking" -3 [NOSCRIPT LOADING STALE] [] "6.0.0" "O(1), more with some options"
        "Switches the support for client-side caching";
    ClientTrackinginfo "client|trackinginfo" 2 [NOSCRIPT LOADING STALE] [] "6.2.0" "O(1)"
        "Describes the client-side caching of this connection";
    ClientCaching "client|caching" 3 [NOSCRIPT LOADING STALE] [] "6.0.0" "O(1)"
        "Tells whether the keys of the next command are tracked";
    ClientGetredir "client|getredir" 2 [NOSCRIPT LOADING STALE] [] "6.0.0" "O(1)"
        "Returns the id of the client that receives tracking messages";
    ClientHelp "client|help" 2 [LOADING STALE] [] "5.0.0" "O(1)"
        "Describes the subcommands";
}
