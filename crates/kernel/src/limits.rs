//! Every bound, in one place; a constant that depends on another is asserted beside it.

use crate::time::Span;

/// The longest key in bytes: 64 KiB less what the store puts before a key; it counts with 16 bits.
pub const KEY_BYTES_MAX: usize = 64 * 1024 - 256;
/// The longest value in bytes that a keyspace may be configured to take.
pub const VALUE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The longest value in bytes unless configured otherwise.
pub const VALUE_BYTES_DEFAULT: usize = 16 * 1024 * 1024;
/// The longest head that a message of any kind may have, in bytes.
pub const HEADER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The longest head in bytes of a message whose kind says nothing else: what is decoded of it can
/// take a hundred times as much, so a kind that wants more reads its lists in steps.
pub const HEADER_BYTES_USUAL: usize = 64 * 1024 - 1;
/// The longest frame between hosts in bytes: a header, a key, a record and room for a page.
pub const FRAME_BYTES_MAX: usize = VALUE_BYTES_MAX + KEY_BYTES_MAX + HEADER_BYTES_MAX + 1024;
/// The most members a replication group can have.
pub const GROUP_MEMBERS_MAX: usize = 7;
/// The most decided changes of one group that wait for an earlier one.
pub const INSTALLS_QUEUED_MAX: usize = 64;
/// The most intervals of the ring whose views a lane remembers.
pub const ROUTES_MAX: usize = 65_536;
/// The most groups a node takes part in for one keyspace; those that were split do not count.
pub const GROUPS_MAX: usize = 4096;
/// The most keys that a member looks through for one message of a transfer or of a removal of
/// tombstones: clients wait meanwhile.
pub const LIST_KEYS_MAX: usize = 512;
/// The most bytes of records in one answer to a transfer; at least one record always fits.
pub const FETCH_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of records that are fetched from one source before a question to it waits until
/// they are durable.
pub const FETCHED_AHEAD_BYTES_MAX: usize = 8 * FETCH_BYTES_MAX;
/// About the most bytes that one turn handles for transfers.
pub const TURN_BYTES_MAX: usize = 64 * 1024;
/// The most questions of transfers that wait at a source.
pub const SERVING_MAX: usize = 1024;
/// The most keys that one source has listed for a transfer before it is asked for no more.
pub const TRANSFER_LISTED_MAX: usize = 4 * LIST_KEYS_MAX;
/// The most keys whose records a transfer waits for before it turns to the next lists.
pub const TRANSFER_PULLS_MAX: usize = 2 * LIST_KEYS_MAX;
/// The most keys of a slot that was given up that are deleted in one turn.
pub const SWEEP_KEYS_MAX: usize = 256;
/// About how many bytes are read for that in one turn.
pub const SWEEP_BYTES_MAX: usize = 1 << 20;
/// The most parts of a piece of data that one member compares with another.
pub const COMPARED_PARTS_MAX: usize = 64;
/// The most tombstones that are removed from a group at a time.
pub const PURGE_KEYS_MAX: usize = 4096;
/// The most groups that one message between nodes speaks of.
pub const BEATS_MAX: usize = 1024;
/// The most messages of reconfigurations in one message between nodes.
pub const RECONFIGURES_MAX: usize = 256;
/// The most decisions of a group in one message.
pub const DECISIONS_IN_MESSAGE_MAX: usize = 64;
/// The longest name of a keyspace in bytes.
pub const KEYSPACE_NAME_BYTES_MAX: usize = 64;
/// The most keyspaces of a cluster.
pub const KEYSPACES_MAX: usize = 256;
/// The most settings of a keyspace.
pub const SETTINGS_MAX: usize = 32;
/// The longest name or value of a setting in bytes.
pub const SETTING_BYTES_MAX: usize = 128;
/// The most groups that a keyspace made online begins with; more come by splits.
pub const FIRST_GROUPS_MAX: usize = 256;
/// The most partitions of a keyspace that is placed by them.
pub const PARTITIONS_MAX: usize = 1024;
/// How many decrees of the catalog a host keeps for those that are a little behind.
pub const DECREES_KEPT: usize = 256;
/// The most orders to the catalog that wait on one host.
pub const CATALOG_ORDERS_MAX: usize = 64;
/// The most operations of one lane that wait until a replica of their key is known.
pub const UNROUTED_MAX: usize = 4096;
/// The most hosts a cluster can be born with. More may join.
pub const FOUNDING_HOSTS_MAX: usize = 64;
/// The most tokens that one host takes when it is born or joins.
pub const HOST_TOKENS_MAX: usize = 64;
/// The most operations one lane coordinates at once; more are refused as overload.
pub const OPERATIONS_MAX: usize = 65_536;
/// The most keys of one page of a scan.
pub const SCAN_KEYS_MAX: usize = 10_000;
/// The most keys of one page of a scan that are read by themselves; the page ends behind them.
pub const PAGE_DOUBTS_MAX: usize = 512;
/// How many of them are read at a time at most.
pub const PAGE_READS_MAX: usize = 64;
/// The most bytes of records in one page between replicas; at least one record always fits.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// The most keys of which a lane remembers the one version that they have.
pub const INDEX_KEYS_MAX: usize = 1 << 18;
/// The most bytes that wait for a node's disk, writes and what rests on them, before it stops
/// taking client requests.
pub const UNSYNCED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long what clients have sent lies with a host before it tells its lanes that it is not read.
pub const UNREAD_FOR: Span = Span::millis(25);
/// The most such bytes before frames of keyspaces that other hosts send are dropped: what its own
/// clients have in hand by then must still find room.
pub const PEER_UNSYNCED_BYTES_MAX: usize = 4 * UNSYNCED_BYTES_MAX;
/// The longest value of a client in bytes that a node's table keeps beside the store.
pub const CACHED_VALUE_BYTES_MAX: usize = 64 * 1024;
/// The longest record in bytes that it keeps: such a value, with room for what an engine keeps
/// with it. Of a longer one it knows the head.
pub const CACHED_RECORD_BYTES_MAX: usize = CACHED_VALUE_BYTES_MAX + 512;
/// How many of a value's first bytes its head has: all that an engine tells values apart by.
pub const VALUE_HEAD_BYTES: usize = 32;
/// The most bytes queued for one peer before frames to it are dropped.
pub const PEER_QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A frame of more bytes than this carries one large value, no page.
pub const LARGE_FRAME_BYTES: usize = 2 * PAGE_BYTES_MAX;
/// The most bytes queued for one peer before large frames to it are dropped: what is asked again
/// because its answer is still on its way must not queue up behind it, and before all else.
pub const LARGE_QUEUE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most bytes of replies queued for one client before its requests are no longer read.
pub const CLIENT_QUEUE_BYTES_MAX: usize = 1024 * 1024;
/// The most commands of one client connection that wait for an answer.
pub const PIPELINE_COMMANDS_MAX: usize = 1024;
/// The most arguments of one command.
pub const COMMAND_ARGUMENTS_MAX: usize = 1024 * 1024;
/// The longest inline command in bytes.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of one command, all arguments together, unless one value alone may be longer.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The most clients of a host that follow what happens in the cluster.
pub const WATCHERS_MAX: usize = 1024;
/// The most answers to one watch that wait for a client on HTTP or gRPC before the watch ends.
pub const WATCH_QUEUE_MAX: usize = 64;
/// The most operations of one client connection in hand at once; a longer MSET takes turns.
pub const CLIENT_OPERATIONS_MAX: usize = 1024;
/// The most bytes of unanswered commands of one client before its requests are no longer read.
pub const CLIENT_PENDING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The most bytes of values one client has asked for but not yet taken, as far as can be foreseen.
pub const CLIENT_READ_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most hosts a node remembers, those that have left included; of more it learns nothing.
pub const HOSTS_MAX: usize = 4096;
/// The most tokens of one host.
pub const TOKENS_PER_HOST_MAX: usize = 64;
/// The most parts of the ring that one host tells the weight of.
pub const PIECES_MAX: usize = 64;
/// The longest address of a host in bytes.
pub const ADDRESS_BYTES_MAX: usize = 256;
/// The most doors that a host tells of.
pub const DOORS_MAX: usize = 8;
/// The longest name of a door in bytes.
pub const DOOR_NAME_BYTES_MAX: usize = 32;
/// The longest name of a failure zone in bytes.
pub const ZONE_BYTES_MAX: usize = 64;
/// The most random neighbours that a Cyclon view may be made for.
pub const CYCLON_VIEW_MAX: usize = 64;
/// About how many bytes of news of hosts go into one message.
pub const NEWS_BYTES_MAX: usize = 32 * 1024;
/// The most hosts that one message of anti-entropy lists or asks for.
pub const HOSTS_LISTED_MAX: usize = 1024;
/// The most messages of news that answer one question.
pub const NEWS_MESSAGES_MAX: usize = 8;
/// How many successors each token keeps.
pub const SUCCESSORS_MAX: usize = 8;
/// The most nodes that one node's failure detector watches.
pub const WATCHED_MAX: usize = 10;
/// How often a ring lookup may be passed on.
pub const LOOKUP_HOPS_MAX: u8 = 16;
/// The longest causal context in bytes, as clients carry it.
pub const CONTEXT_BYTES_MAX: usize = 64 * 1024;
/// The most ranges of isolated counters of one actor that a clock tells in one message; the next
/// message goes on behind them.
pub const CLOCK_RANGES_MAX: usize = 256;
/// The most keys that one replica strips, or hands over, in one turn.
pub const STRIP_KEYS_MAX: usize = 1024;
/// The most writes that other nodes forwarded whose endings are remembered, to know a repeated one.
pub const WRITES_REMEMBERED_MAX: usize = 4096;
/// The most names of writes that the replicas of a keyspace on one node remember together, beside
/// those that are stored.
pub const WRITE_NAMES_MAX: usize = 65_536;
/// The most items of one transaction.
pub const TRANSACTION_ITEMS_MAX: usize = 1024;
/// The most bytes of the keys and values of one transaction together; an engine also refuses one
/// whose answer would hold more.
pub const TRANSACTION_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The longest request of a client of ZooKeeper in bytes, and the longest answer to a read: clients
/// and servers of ZooKeeper take no more unless they are set otherwise.
pub const JUTE_FRAME_BYTES_MAX: usize = 0xf_ffff;
/// The longest reply of one command in bytes.
pub const REPLY_BYTES_MAX: usize = VALUE_BYTES_MAX;
/// The most entries of a replicated log that wait to be committed: more is not proposed.
pub const VSR_IN_FLIGHT_MAX: u64 = 4096;
/// The most bytes of commands of a replicated log that wait to be committed, unless a group is set
/// to fewer; one command more always fits.
pub const VSR_IN_FLIGHT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The most entries of a replicated log in one message.
pub const VSR_ENTRIES_MAX: usize = 512;
/// The most bytes of entries in one message; at least one entry always fits.
pub const VSR_ENTRIES_BYTES_MAX: usize = 256 * 1024;
/// The most bytes of the newest entries of one log that stay in memory.
pub const VSR_TAIL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most entries that one group executes before others have their turn.
pub const VSR_EXECUTE_MAX: usize = 1024;
/// About the most bytes of one page of a state's copy, and of what is stored at a time.
pub const VSR_PAGE_BYTES_MAX: usize = FETCH_BYTES_MAX;
/// The longest cursor of a state's copy in bytes.
pub const VSR_CURSOR_BYTES_MAX: usize = KEY_BYTES_MAX;
/// The most nodes that copy the state of one group from one member.
pub const VSR_COPIES_MAX: usize = 2 * GROUP_MEMBERS_MAX;
/// How many views, and how many epochs, a replica may be behind another: one more than that is
/// nonsense. A view every tenth of a second lasts 13 years.
pub const VSR_BEHIND_MAX: u64 = 1 << 32;
/// The longest log that anybody can have.
pub const VSR_OPS_MAX: u64 = 1 << 47;
/// How many committed entries a newcomer may lack when it is made a member.
pub const VSR_LEARNER_LAG_MAX: u64 = 1024;
/// The most members of the roll.
pub const ROLL_MEMBERS_MAX: usize = HOSTS_MAX;
/// The most rings in which members of the roll observe each other: each has one bit of sixteen.
pub const ROLL_RINGS_MAX: usize = 16;
/// The longest metadata of a member of the roll in bytes.
pub const ROLL_METADATA_BYTES_MAX: usize = 96;
/// The most nodes that one change of the roll lets in and out together.
pub const ROLL_CHANGE_MAX: usize = 1024;
/// The most bytes of one change of the roll.
pub const ROLL_CHANGE_BYTES_MAX: usize =
    ROLL_CHANGE_MAX * (16 + ADDRESS_BYTES_MAX + ROLL_METADATA_BYTES_MAX) + 32;
/// How many of those that are members no more the roll remembers, the newest.
pub const ROLL_LEFT_MAX: usize = 4096;
/// The most alerts in one message.
pub const ROLL_ALERTS_MAX: usize = 128;
/// The most nodes that want to join of which a member keeps what was reported, and the most that
/// wait for one observer.
pub const ROLL_JOINERS_MAX: usize = 1024;
/// The most messages of the next configuration that wait until it is installed; an alert counts
/// like a message.
pub const ROLL_EARLY_MAX: usize = 8192;
/// The most decided changes that a member keeps, and tells at a time.
pub const ROLL_DECISIONS_MAX: usize = 16;
/// The most bytes of decided changes in one message; at least one always fits.
pub const ROLL_DECISIONS_BYTES_MAX: usize = 1024 * 1024;
/// The most members that one member has been told to remove, and are not removed yet.
pub const ROLL_KICKS_MAX: usize = 64;
/// The most contacts that a joiner is given.
pub const ROLL_SEEDS_MAX: usize = 64;
/// The most questions that a member answers between two ticks: it is asked again.
pub const ROLL_ANSWERS_MAX: usize = 256;
/// The most rounds for which an event of EpTO is relayed.
pub const EPTO_TTL_MAX: u16 = 128;
/// The most peers that one node of EpTO sends to in one round.
pub const EPTO_FANOUT_MAX: usize = 64;
/// The most events of EpTO in one ball; what is more goes into another one. They take 64 KiB.
pub const EPTO_BALL_EVENTS_MAX: usize = 1024;
/// The most events of EpTO that wait to be delivered at one node.
pub const EPTO_EVENTS_MAX: usize = 8192;
/// How many events of EpTO that were delivered, or came late, a node remembers.
pub const EPTO_SETTLED_MAX: usize = 4 * EPTO_EVENTS_MAX;
/// How many sources of events of EpTO a node remembers.
pub const EPTO_SOURCES_MAX: usize = HOSTS_MAX;
/// How many of them it tells with its state.
pub const EPTO_HORIZON_SOURCES_MAX: usize = 1024;
/// The longest payload of an event of EpTO in bytes.
pub const EPTO_PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// The most bytes of payloads of EpTO that one node holds, and one payload more.
pub const EPTO_HELD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// For how many rounds a payload that is missing holds up what comes after its event, and for how
/// many one that was delivered is kept for others.
pub const EPTO_HOLD_ROUNDS: u16 = 16;
/// The most payloads of EpTO that are asked for in one message.
pub const EPTO_PULL_KEYS_MAX: usize = 256;
/// The most bytes of payloads of EpTO in one message; one always fits.
pub const EPTO_PULL_BYTES_MAX: usize = 256 * 1024;
/// The highest time of EpTO that a node believes to be one.
pub const EPTO_TIME_MAX: u64 = 1 << 62;
/// How far a clock of EpTO may be ahead of another one before it is not believed.
pub const EPTO_CLOCK_JUMP_MAX: u64 = 1 << 20;
/// The longest path of a tree's node in bytes: it is a part of keys, messages and cursors.
pub const TREE_PATH_BYTES_MAX: usize = 16 * 1024;
/// The most bytes that a node of a tree has, as of ZooKeeper's frames.
pub const TREE_DATA_BYTES_MAX: usize = 1024 * 1024;
/// The most nodes of one tree: they are in memory.
pub const TREE_NODES_MAX: u64 = 1 << 24;
/// The most bytes of what the nodes of one tree have, and of their paths and lists, together.
pub const TREE_BYTES_MAX: u64 = 16 << 30;
/// The most sessions of one tree.
pub const TREE_SESSIONS_MAX: u32 = 1 << 16;
/// The most entries of a node's list of who may do what.
pub const TREE_ACL_MAX: usize = 256;
/// The most names that one client of a tree has shown to be its own.
pub const TREE_IDS_MAX: usize = 64;
/// The most parents that are made with one node.
pub const TREE_PARENTS_MAX: usize = 256;
/// The most nodes that are counted at a client's request, but for all nodes of a tree.
pub const TREE_COUNTED_MAX: usize = 1 << 18;
/// The most names of a path of a tree that is limited: every change below looks whether one of so
/// many nodes above it is.
pub const TREE_QUOTA_NAMES_MAX: usize = 16;
/// The most paths of one page of a tree.
pub const TREE_PAGE_MAX: usize = 4096;

/// The most bytes of sibling values that a coordinator lets a key have: what all replicas of a key
/// accept apart from each other must fit one message when they meet.
pub const SIBLING_BYTES_MAX: usize = 32 * 1024 * 1024;

const _: () = assert!(SIBLING_BYTES_MAX * (GROUP_MEMBERS_MAX + 1) <= VALUE_BYTES_MAX);
const _: () = assert!(TREE_DATA_BYTES_MAX <= TRANSACTION_BYTES_MAX);
const _: () = assert!(TREE_NODES_MAX <= u32::MAX as u64, "children are counted with 32 bits");
const _: () = assert!(VALUE_BYTES_DEFAULT <= VALUE_BYTES_MAX);
const _: () = assert!(FRAME_BYTES_MAX < u32::MAX as usize);
const _: () = assert!(HEADER_BYTES_USUAL <= HEADER_BYTES_MAX);
const _: () = assert!(NEWS_BYTES_MAX + 8192 <= HEADER_BYTES_USUAL);
const _: () = assert!(HOSTS_LISTED_MAX * 48 <= HEADER_BYTES_USUAL);
const _: () = assert!(
    FIRST_GROUPS_MAX * (48 + GROUP_MEMBERS_MAX * 10)
        + PARTITIONS_MAX * 10
        + SETTINGS_MAX * SETTING_BYTES_MAX * 2
        + 1024
        <= HEADER_BYTES_USUAL,
    "a decree fits the head of a message"
);
const _: () = assert!(VSR_CURSOR_BYTES_MAX + 96 + 2 * GROUP_MEMBERS_MAX * 10 <= HEADER_BYTES_USUAL);
const _: () = assert!(VSR_ENTRIES_MAX * (32 + GROUP_MEMBERS_MAX * 10) <= HEADER_BYTES_USUAL);
const _: () = assert!(
    ROLL_ALERTS_MAX * (24 + ADDRESS_BYTES_MAX + ROLL_METADATA_BYTES_MAX) + 64 <= HEADER_BYTES_USUAL,
    "alerts fit the head of a message"
);
const _: () = assert!(
    ROLL_RINGS_MAX * (16 + ADDRESS_BYTES_MAX + ROLL_METADATA_BYTES_MAX) + 64 <= HEADER_BYTES_USUAL,
    "a joiner's observers fit the head of a message"
);
const _: () = assert!(EPTO_BALL_EVENTS_MAX * 55 + 8 <= HEADER_BYTES_USUAL, "a ball fits a head");
const _: () = assert!(EPTO_PULL_KEYS_MAX * 30 + 16 <= HEADER_BYTES_USUAL, "and so do its names");
const _: () = assert!(EPTO_TIME_MAX + EPTO_CLOCK_JUMP_MAX < u64::MAX / 2, "clocks never end");
const _: () = assert!(EPTO_HORIZON_SOURCES_MAX * 25 + 64 <= HEADER_BYTES_USUAL);
const _: () = assert!(ROLL_EARLY_MAX >= 2 * ROLL_MEMBERS_MAX, "all may vote early");
const _: () = assert!(
    ROLL_MEMBERS_MAX * (16 + ADDRESS_BYTES_MAX + ROLL_METADATA_BYTES_MAX) + ROLL_LEFT_MAX * 10
        <= VALUE_BYTES_MAX,
    "a configuration fits a message"
);
const _: () = assert!(INLINE_BYTES_MAX >= KEY_BYTES_MAX);
const _: () = assert!(CLIENT_READ_BYTES_MAX > CLIENT_QUEUE_BYTES_MAX);
const _: () = assert!(REPLY_BYTES_MAX >= VALUE_BYTES_MAX);
const _: () = assert!(TRANSACTION_BYTES_MAX <= CLIENT_PENDING_BYTES_MAX);
const _: () = assert!(TRANSACTION_BYTES_MAX + TRANSACTION_ITEMS_MAX * 1024 <= VALUE_BYTES_MAX);
