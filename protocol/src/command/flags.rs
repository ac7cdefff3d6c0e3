//! The words in which commands are described: flags, categories, what happens to keys.
//!
//! For: the three sets, in the order and with the names that Redis prints.
//! Not here: which command has which (the families).

use super::bits::bit_set;

bit_set! {
    /// How a command behaves.
    Flags {
        /// May change the keyspace.
        WRITE = "write",
        /// Reads keys and changes nothing.
        READONLY = "readonly",
        /// Refused when memory is full.
        DENYOOM = "denyoom",
        /// For operators.
        ADMIN = "admin",
        /// Belongs to publish and subscribe.
        PUBSUB = "pubsub",
        /// Not allowed in scripts.
        NOSCRIPT = "noscript",
        /// May block its connection.
        BLOCKING = "blocking",
        /// Allowed while data is loaded.
        LOADING = "loading",
        /// Allowed while the data may be stale.
        STALE = "stale",
        /// Not shown to `MONITOR`.
        SKIP_MONITOR = "skip_monitor",
        /// Not logged when slow.
        SKIP_SLOWLOG = "skip_slowlog",
        /// Implies `ASKING`.
        ASKING = "asking",
        /// Constant or logarithmic time.
        FAST = "fast",
        /// Allowed before authentication.
        NO_AUTH = "no_auth",
        /// Replicated though not a write.
        MAY_REPLICATE = "may_replicate",
        /// Not allowed while data is loaded asynchronously.
        NO_ASYNC_LOADING = "no_async_loading",
        /// May be called with keys or without.
        NO_MANDATORY_KEYS = "no_mandatory_keys",
        /// Not allowed in a transaction.
        NO_MULTI = "no_multi",
        /// The keys cannot be found by position alone.
        MOVABLEKEYS = "movablekeys",
        /// Allowed while a script is too busy to answer.
        ALLOW_BUSY = "allow_busy",
        /// Korum's own: may be split per key on the client port.
        SPLIT = "",
        /// Korum's own: speaks for the whole cluster on the client port.
        ALL_NODES = "",
    }
}

bit_set! {
    /// The categories by which users are given rights.
    Categories {
        /// About keys of any type.
        KEYSPACE = "keyspace",
        /// Reads keys.
        READ = "read",
        /// Writes keys.
        WRITE = "write",
        /// About sets.
        SET = "set",
        /// About sorted sets.
        SORTEDSET = "sortedset",
        /// About lists.
        LIST = "list",
        /// About hashes.
        HASH = "hash",
        /// About strings.
        STRING = "string",
        /// About strings as bits.
        BITMAP = "bitmap",
        /// About estimated counts.
        HYPERLOGLOG = "hyperloglog",
        /// About places on earth.
        GEO = "geo",
        /// About streams.
        STREAM = "stream",
        /// About publish and subscribe.
        PUBSUB = "pubsub",
        /// For operators.
        ADMIN = "admin",
        /// Constant or logarithmic time.
        FAST = "fast",
        /// Not fast.
        SLOW = "slow",
        /// May block its connection.
        BLOCKING = "blocking",
        /// May harm the service when used carelessly.
        DANGEROUS = "dangerous",
        /// About the connection itself.
        CONNECTION = "connection",
        /// About transactions.
        TRANSACTION = "transaction",
        /// About scripts.
        SCRIPTING = "scripting",
    }
}

bit_set! {
    /// What a command does with a key.
    KeyFlags {
        /// Reads the value.
        RO = "RO",
        /// Reads and changes the value.
        RW = "RW",
        /// Overwrites the value without a look.
        OW = "OW",
        /// Removes the key.
        RM = "RM",
        /// Tells the caller of the value.
        ACCESS = "access",
        /// Changes what is there.
        UPDATE = "update",
        /// Adds and never changes what is there.
        INSERT = "insert",
        /// Deletes explicitly.
        DELETE = "delete",
        /// Other flags apply with some arguments.
        VARIABLE_FLAGS = "variable_flags",
        /// Is routed as a key is, and is none.
        NOT_KEY = "not_key",
    }
}
