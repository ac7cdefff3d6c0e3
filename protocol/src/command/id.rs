//! An id for every command and subcommand, to match on.
//!
//! For: exhaustive matches in the node, so that a new command asks everywhere what to do with it.
//! Not here: any fact about a command (`spec`).

macro_rules! command_ids {
    ($($id:ident,)*) => {
        /// A command or subcommand; the name says which.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[expect(missing_docs, reason = "each is documented by the summary in its specification")]
        pub enum CommandId {
            $($id,)*
        }

        impl CommandId {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$(Self::$id,)*];
        }
    };
}

command_ids! {
    Get, Set, SetNx, SetEx, PSetEx, GetSet, GetDel, GetEx, MGet, MSet, MSetNx, Append, StrLen, GetRange,
    SubStr, SetRange, Incr, Decr, IncrBy, DecrBy, IncrByFloat, Lcs,
    HSet, HSetNx, HMSet, HGet, HMGet, HGetAll, HKeys, HVals, HLen, HExists, HStrLen, HDel, HIncrBy,
    HIncrByFloat, HRandField, HScan, HExpire, HPExpire, HExpireAt, HPExpireAt, HTtl, HPTtl, HExpireTime, HPExpireTime,
    HPersist, HGetDel, HGetEx, HSetEx,
    SetBit, GetBit, BitCount, BitPos, BitOp, BitField, BitFieldRo,
    PfAdd, PfCount, PfMerge, PfDebug, PfSelfTest,
    LPush, RPush, LPushX, RPushX, LPop, RPop, LLen, LRange, LIndex, LSet, LInsert, LRem, LTrim, LPos,
    LMove, RPopLPush, LMPop, BlPop, BrPop, BlMove, BrPopLPush, BlMPop,
    XAdd, XLen, XRange, XRevRange, XRead, XDel, XTrim, XSetId, XGroup, XGroupCreate, XGroupSetId,
    XGroupDestroy, XGroupCreateConsumer, XGroupDelConsumer, XGroupHelp, XReadGroup, XAck, XPending, XClaim,
    XAutoClaim, XInfo, XInfoStream, XInfoGroups, XInfoConsumers, XInfoHelp,
    SAdd, SRem, SMembers, SIsMember, SMIsMember, SCard, SPop, SRandMember, SMove, SInter, SInterCard, SUnion,
    SDiff, SInterStore, SUnionStore, SDiffStore, SScan,
    ZAdd, ZIncrBy, ZRem, ZCard, ZScore, ZMScore, ZRank, ZRevRank, ZCount, ZLexCount, ZRange, ZRangeStore,
    ZRevRange, ZRangeByScore, ZRevRangeByScore, ZRangeByLex, ZRevRangeByLex, ZRemRangeByRank,
    ZRemRangeByScore, ZRemRangeByLex, ZPopMin, ZPopMax, ZMPop, BzPopMin, BzPopMax, BzMPop, ZRandMember, ZUnion, ZInter, ZDiff,
    ZUnionStore, ZInterStore, ZDiffStore, ZInterCard, ZScan,
    GeoAdd, GeoDist, GeoHash, GeoPos, GeoSearch, GeoSearchStore, GeoRadius, GeoRadiusByMember, GeoRadiusRo,
    GeoRadiusByMemberRo,
    Del, Unlink, Exists, Touch, Type,
    Expire, PExpire, ExpireAt, PExpireAt, Ttl, PTtl, ExpireTime, PExpireTime, Persist, Rename, RenameNx,
    Copy, Move, RandomKey, Keys, Scan, Object, ObjectEncoding, ObjectFreq, ObjectIdletime, ObjectRefcount,
    ObjectHelp, Dump, Restore, Sort, SortRo, Multi, Exec, Discard, Watch, Unwatch,
    Eval, EvalSha, EvalRo, EvalShaRo, Script, ScriptExists, ScriptFlush, ScriptKill, ScriptLoad, ScriptDebug, ScriptHelp,
    FCall, FCallRo, Function, FunctionDelete, FunctionDump, FunctionFlush, FunctionHelp, FunctionKill, FunctionList,
    FunctionLoad, FunctionRestore, FunctionStats, Ping, Echo, Hello, Auth, Select, Quit, Reset, Client, ClientId,
    ClientInfo, ClientList, ClientSetname, ClientGetname, ClientSetinfo, ClientKill, ClientNoEvict,
    ClientNoTouch, ClientReply, ClientPause, ClientUnpause, ClientUnblock, ClientTracking,
    ClientTrackinginfo, ClientCaching, ClientGetredir, ClientHelp, Command, CommandCount, CommandInfo,
    CommandDocs, CommandList, CommandGetkeys, CommandGetkeysandflags, CommandHelp, Info, Config,
    ConfigGet, ConfigSet, ConfigResetstat, ConfigRewrite, ConfigHelp, DbSize, FlushDb, FlushAll, SwapDb, Time,
    Shutdown, Lolwut, Wait, ReadOnly, ReadWrite, Asking, Memory, MemoryUsage, MemoryDoctor, MemoryStats,
    MemoryPurge, MemoryMallocStats, MemoryHelp, Role, Module, ModuleList, ModuleHelp, Slowlog, SlowlogGet, SlowlogLen, SlowlogReset, SlowlogHelp, Latency,
    LatencyDoctor, LatencyGraph, LatencyHistogram, LatencyHistory, LatencyLatest, LatencyReset, LatencyHelp, Acl, AclCat, AclDeluser, AclDryrun, AclGenpass, AclGetuser, AclList, AclLoad, AclLog, AclSave, AclSetuser, AclUsers, AclWhoami, AclHelp, Debug, Monitor, Cluster, ClusterInfo, ClusterMyid, ClusterNodes, ClusterSlots,
    ClusterShards, ClusterKeyslot, ClusterCountkeysinslot, ClusterGetkeysinslot, ClusterMeet,
    ClusterForget, ClusterLinks, ClusterCountFailureReports, ClusterReplicas, ClusterSlaves, ClusterHelp,
    Subscribe, Unsubscribe, PSubscribe, PUnsubscribe, Publish, SSubscribe, SUnsubscribe, SPublish, PubSub,
    PubSubChannels, PubSubNumsub, PubSubNumpat, PubSubShardchannels, PubSubShardnumsub, PubSubHelp,
    Korum, KorumMap, KorumStatus, KorumExplain, KorumPlan, KorumDrain, KorumForget, KorumReplication,
    KorumWeight, KorumReformQuorum, KorumConsistency, KorumSafeToStop, KorumPeer, KorumPart, KorumClear, KorumWatch, KorumExec,
    KorumExecRo, KorumReady, KorumEval, KorumEvalRo, KorumFCall, KorumFCallRo, KorumLibraries, KorumChangeLibraries,
    KorumScript, KorumHelp,
}
