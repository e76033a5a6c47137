package quorate;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static quorate.ZooKeepers.bytes;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.server.auth.DigestAuthenticationProvider;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Protocol;

/** ZooKeeper's own client: what is done with nodes, by clients of two hosts. */
@EnabledIfEnvironmentVariable(named = ZooKeepers.VARIABLE, matches = ".+")
class ZooKeeperNodesTest {
    private final ZooKeepers clients = new ZooKeepers();
    private ZooKeeper one;
    private ZooKeeper other;

    @BeforeEach
    void connect() throws Exception {
        one = clients.at(0);
        other = clients.at(1);
    }

    @AfterEach
    void close() throws Exception {
        clients.close();
    }

    @Test
    void eachKindOfNodeIsMade() throws Exception {
        Stat stat = new Stat();
        String plain = clients.root + "/plain";
        assertEquals(plain, one.create(
            plain, bytes("x"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, stat));
        assertEquals(1, stat.getDataLength());
        assertEquals(stat, other.exists(plain, false));
        assertThrows(KeeperException.NodeExistsException.class,
            () -> clients.make(other, "/plain", "", CreateMode.PERSISTENT));
        assertThrows(KeeperException.NoNodeException.class,
            () -> clients.make(other, "/none/child", "", CreateMode.PERSISTENT));

        String ephemeral = clients.make(one, "/ephemeral", "", CreateMode.EPHEMERAL);
        assertEquals(one.getSessionId(), other.exists(ephemeral, false).getEphemeralOwner());
        assertThrows(KeeperException.NoChildrenForEphemeralsException.class,
            () -> clients.make(other, "/ephemeral/child", "", CreateMode.PERSISTENT));

        String first = clients.make(one, "/s-", "", CreateMode.PERSISTENT_SEQUENTIAL);
        String second = clients.make(other, "/s-", "", CreateMode.EPHEMERAL_SEQUENTIAL);
        assertTrue(first.matches(".*/s-\\d{10}") && first.compareTo(second) < 0, first + second);

        String container = clients.make(one, "/container", "", CreateMode.CONTAINER);
        clients.make(other, "/container/child", "", CreateMode.PERSISTENT);
        one.delete(container + "/child", -1);
        ZooKeepers.eventually(
            "the container is gone", () -> other.exists(container, false) == null);

        String timed = clients.root + "/timed";
        one.create(timed, null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, stat, 50);
        String both = one.create(clients.root + "/timed-", null, Ids.OPEN_ACL_UNSAFE,
            CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, stat, 600_000);
        ZooKeepers.eventually("its time is over", () -> other.exists(timed, false) == null);
        assertNotNull(other.exists(both, false));
    }

    @Test
    void nodesAreReadSetAndRemoved() throws Exception {
        String node = clients.make(one, "/node", "first", CreateMode.PERSISTENT);
        Stat stat = new Stat();
        assertArrayEquals(bytes("first"), other.getData(node, false, stat));
        assertEquals(0, stat.getVersion());
        assertEquals(1, other.setData(node, bytes("second"), 0).getVersion());
        assertThrows(KeeperException.BadVersionException.class,
            () -> one.setData(node, bytes("third"), 0));
        assertArrayEquals(bytes("second"), one.getData(node, false, stat));
        assertTrue(stat.getMzxid() > stat.getCzxid());
        clients.make(other, "/node/b", "", CreateMode.PERSISTENT);
        clients.make(one, "/node/a", "", CreateMode.PERSISTENT);
        List<String> children = other.getChildren(node, false, stat);
        assertEquals(Set.of("a", "b"), new HashSet<>(children));
        assertEquals(2, stat.getNumChildren());
        assertThrows(KeeperException.NotEmptyException.class, () -> other.delete(node, -1));
        one.delete(node + "/a", 0);
        other.delete(node + "/b", -1);
        assertThrows(KeeperException.BadVersionException.class, () -> one.delete(node, 7));
        one.delete(node, 1);
        assertNull(other.exists(node, false));
        assertThrows(KeeperException.NoNodeException.class,
            () -> other.getData(node, false, null));
    }

    @Test
    void noDataIsNotEmptyData() throws Exception {
        String node = clients.root + "/node";
        Stat stat = new Stat();
        one.create(node, null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        assertNull(other.getData(node, false, stat));
        assertEquals(0, stat.getDataLength());
        one.setData(node, new byte[0], -1);
        assertArrayEquals(new byte[0], other.getData(node, false, null));
        other.setData(node, null, -1);
        assertNull(one.getData(node, false, null));
        byte[] large = new byte[900_000];
        Arrays.fill(large, (byte) 7);
        one.setData(node, large, -1);
        assertArrayEquals(large, other.getData(node, false, null));
    }

    @Test
    @EnabledIfEnvironmentVariable(named = "QUORATE", matches = "1")
    void aNodeIsAKeyOfClientsOfRedis() throws Exception {
        String node = clients.make(one, "/node", "first", CreateMode.PERSISTENT);
        try (Jedis redis = new Jedis(Endpoint.HOST, Endpoint.PORT)) {
            redis.sendCommand(Protocol.Command.SELECT, "coordination");
            assertEquals("first", redis.get(node));
            redis.set(node, "second");
            assertArrayEquals(bytes("second"), other.getData(node, false, null));
            redis.set(node + "/made/below", "third");
            assertArrayEquals(bytes("third"), other.getData(node + "/made/below", false, null));
            one.setData(node, null, -1);
            assertEquals("", redis.get(node));
            assertNull(redis.get(node + "/absent"));
        }
    }

    @Test
    void severalAreDoneTogetherOrNone() throws Exception {
        String node = clients.make(one, "/node", "", CreateMode.PERSISTENT);
        List<OpResult> results = one.multi(List.of(
            Op.check(node, 0),
            Op.create(node + "/a-", bytes("1"), Ids.OPEN_ACL_UNSAFE,
                CreateMode.PERSISTENT_SEQUENTIAL),
            Op.setData(node, bytes("2"), 0),
            Op.create(node + "/gone", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL),
            Op.delete(node + "/gone", -1)));
        assertEquals(node + "/a-0000000000", ((OpResult.CreateResult) results.get(1)).getPath());
        assertEquals(1, ((OpResult.SetDataResult) results.get(2)).getStat().getVersion());
        assertEquals(List.of("a-0000000000"), other.getChildren(node, false));

        KeeperException failure = assertThrows(KeeperException.NoNodeException.class,
            () -> one.multi(List.of(
                Op.setData(node, bytes("3"), -1),
                Op.delete(node + "/absent", -1),
                Op.delete(node, -1))));
        List<Integer> codes = failure.getResults().stream()
            .map(result -> ((OpResult.ErrorResult) result).getErr()).collect(Collectors.toList());
        assertEquals(List.of(0, -101, -2), codes);
        assertArrayEquals(bytes("2"), other.getData(node, false, null));

        List<OpResult> reads = other.multi(List.of(
            Op.getData(node), Op.getChildren(node), Op.getData(node + "/absent")));
        assertArrayEquals(bytes("2"), ((OpResult.GetDataResult) reads.get(0)).getData());
        assertEquals(1, ((OpResult.GetChildrenResult) reads.get(1)).getChildren().size());
        assertEquals(-101, ((OpResult.ErrorResult) reads.get(2)).getErr());
    }

    @Test
    void whoMayDoWhatIsKept() throws Exception {
        one.addAuthInfo("digest", bytes("ann:secret"));
        String node = clients.root + "/node";
        one.create(node, bytes("x"), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
        assertThrows(KeeperException.NoAuthException.class,
            () -> other.getData(node, false, null));
        assertThrows(KeeperException.NoAuthException.class, () -> other.setData(node, null, -1));
        Id ann = new Id("digest", DigestAuthenticationProvider.generateDigest("ann:secret"));
        Stat stat = new Stat();
        assertEquals(List.of(new ACL(ZooDefs.Perms.ALL, ann)), one.getACL(node, stat));

        List<ACL> readable = Arrays.asList(
            new ACL(ZooDefs.Perms.ALL, ann), new ACL(ZooDefs.Perms.READ, Ids.ANYONE_ID_UNSAFE));
        assertEquals(1, one.setACL(node, readable, stat.getAversion()).getAversion());
        assertArrayEquals(bytes("x"), other.getData(node, false, null));
        assertThrows(KeeperException.NoAuthException.class, () -> other.setData(node, null, -1));
        other.addAuthInfo("digest", bytes("ann:secret"));
        assertEquals(1, other.setData(node, bytes("y"), -1).getVersion());
        List<ACL> unknown = Arrays.asList(new ACL(ZooDefs.Perms.ALL, new Id("nonsense", "x")));
        assertThrows(KeeperException.InvalidACLException.class,
            () -> one.setACL(node, unknown, -1));

        List<ClientInfo> shown = one.whoAmI();
        assertTrue(shown.contains(new ClientInfo("digest", "ann")), shown.toString());
        assertTrue(
            shown.stream().anyMatch(it -> it.getAuthScheme().equals("ip")), shown.toString());
    }

    @Test
    void nodesAreCountedAndThoseOfTheSessionListed() throws Exception {
        String node = clients.make(one, "/node", "", CreateMode.PERSISTENT);
        Set<String> expected = new HashSet<>();
        for (String name : new String[] {"/node/a", "/node/b", "/c"}) {
            expected.add(clients.make(one, name, "", CreateMode.EPHEMERAL));
        }
        clients.make(other, "/node/of-the-other", "", CreateMode.EPHEMERAL);
        assertEquals(expected, new HashSet<>(one.getEphemerals()));
        expected.remove(clients.root + "/c");
        assertEquals(expected, new HashSet<>(one.getEphemerals(node)));
        assertEquals(3, other.getAllChildrenNumber(node));
        assertEquals(5, other.getAllChildrenNumber(clients.root));
    }

    @Test
    void whatIsThereFromTheStart() throws Exception {
        // ZooKeeper tells its servers here; ours are told by no node.
        boolean isOurs = "1".equals(System.getenv("QUORATE"));
        assertEquals(isOurs, one.getConfig(false, null).length == 0);
        assertTrue(one.getChildren("/", false).contains("zookeeper"));
        one.sync("/");
        assertThrows(KeeperException.BadArgumentsException.class,
            () -> one.delete("/zookeeper", -1));
    }
}
