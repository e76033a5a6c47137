//! Commands on other types than byte strings, so that their error says more than "unknown".

use crate::resp::commands::spec::{ONE_KEY, Run, Spec};
use crate::resp::error::Lack;

const HASH: Lack = Lack::Type("hashes");
const LIST: Lack = Lack::Type("lists");
const SET: Lack = Lack::Type("sets");
const SORTED: Lack = Lack::Type("sorted sets");

/// A command on another type. Its arity is not checked: no number of arguments makes it work.
const fn on(lack: Lack, name: &'static str) -> Spec {
    Spec {
        name,
        arity: 0,
        flags: &[],
        keys: ONE_KEY,
        group: "",
        since: "",
        summary: "",
        run: Run::Refused(lack),
    }
}

/// The commands on other types.
#[rustfmt::skip] // Several commands a line.
pub(crate) const SPECS: &[Spec] = &[
    on(HASH, "hset"), on(HASH, "hget"), on(HASH, "hmset"), on(HASH, "hmget"), on(HASH, "hgetall"),
    on(HASH, "hdel"), on(HASH, "hincrby"), on(HASH, "hincrbyfloat"), on(HASH, "hlen"),
    on(HASH, "hscan"), on(HASH, "hkeys"), on(HASH, "hvals"), on(HASH, "hexists"),
    on(HASH, "hsetnx"), on(HASH, "hstrlen"), on(HASH, "hrandfield"),
    on(LIST, "lpush"), on(LIST, "rpush"), on(LIST, "lpop"), on(LIST, "rpop"), on(LIST, "lrange"),
    on(LIST, "llen"), on(LIST, "lindex"), on(LIST, "linsert"), on(LIST, "lrem"), on(LIST, "lset"),
    on(LIST, "ltrim"), on(LIST, "lpos"), on(LIST, "lmove"), on(LIST, "lmpop"), on(LIST, "lpushx"),
    on(LIST, "rpushx"), on(LIST, "rpoplpush"), on(LIST, "blpop"), on(LIST, "brpop"),
    on(LIST, "blmove"), on(LIST, "blmpop"), on(LIST, "brpoplpush"),
    on(SET, "sadd"), on(SET, "srem"), on(SET, "smembers"), on(SET, "sismember"),
    on(SET, "smismember"), on(SET, "scard"), on(SET, "spop"), on(SET, "srandmember"),
    on(SET, "smove"), on(SET, "sscan"), on(SET, "sdiff"), on(SET, "sdiffstore"),
    on(SET, "sinter"), on(SET, "sinterstore"), on(SET, "sintercard"), on(SET, "sunion"),
    on(SET, "sunionstore"),
    on(SORTED, "zadd"), on(SORTED, "zrem"), on(SORTED, "zrange"), on(SORTED, "zscore"),
    on(SORTED, "zmscore"), on(SORTED, "zcard"), on(SORTED, "zcount"), on(SORTED, "zincrby"),
    on(SORTED, "zpopmin"), on(SORTED, "zpopmax"), on(SORTED, "zmpop"), on(SORTED, "bzpopmin"),
    on(SORTED, "bzpopmax"), on(SORTED, "bzmpop"), on(SORTED, "zrank"), on(SORTED, "zrevrank"),
    on(SORTED, "zscan"), on(SORTED, "zrangebyscore"), on(SORTED, "zrangebylex"),
    on(SORTED, "zrevrange"), on(SORTED, "zrevrangebyscore"), on(SORTED, "zrevrangebylex"),
    on(SORTED, "zrangestore"), on(SORTED, "zremrangebyrank"), on(SORTED, "zremrangebyscore"),
    on(SORTED, "zremrangebylex"), on(SORTED, "zlexcount"), on(SORTED, "zrandmember"),
    on(SORTED, "zunion"), on(SORTED, "zunionstore"), on(SORTED, "zinter"),
    on(SORTED, "zinterstore"), on(SORTED, "zintercard"), on(SORTED, "zdiff"),
    on(SORTED, "zdiffstore"),
];
