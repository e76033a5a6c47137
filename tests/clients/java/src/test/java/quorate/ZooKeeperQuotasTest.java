package quorate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static quorate.ZooKeepers.bytes;

import java.util.List;
import java.util.function.Consumer;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException.BadArgumentsException;
import org.apache.zookeeper.KeeperException.NoNodeException;
import org.apache.zookeeper.KeeperException.QuotaExceededException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.Quotas;
import org.apache.zookeeper.StatsTrack;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.cli.DelQuotaCommand;
import org.apache.zookeeper.cli.ListQuotaCommand;
import org.apache.zookeeper.cli.SetQuotaCommand;
import org.apache.zookeeper.data.Stat;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/**
 * Limits of parts of the tree, by the commands of ZooKeeper's own shell: setquota, listquota and
 * delquota.
 */
@EnabledIfEnvironmentVariable(named = ZooKeepers.VARIABLE, matches = ".+")
class ZooKeeperQuotasTest {
    private final ZooKeepers clients = new ZooKeepers();
    private ZooKeeper one;
    private ZooKeeper other;
    private String limited;

    @BeforeEach
    void connect() throws Exception {
        one = clients.at(0);
        other = clients.at(1);
        limited = clients.make(one, "/limited", "abc", CreateMode.PERSISTENT);
    }

    @AfterEach
    void close() throws Exception {
        clients.close();
    }

    private void limit(Consumer<StatsTrack> limits) throws Exception {
        StatsTrack track = new StatsTrack();
        limits.accept(track);
        SetQuotaCommand.createQuota(one, limited, track);
    }

    /** What listquota shows at another host: the limits, or what there is. */
    private StatsTrack listed(int which) throws Exception {
        List<StatsTrack> listed = ListQuotaCommand.listQuota(other, limited);
        assertEquals(2, listed.size());
        return listed.get(which);
    }

    private void counts(long nodes, long bytes) throws Exception {
        assertEquals("count=" + nodes + ",bytes=" + bytes, listed(1).toString());
    }

    private String make(String name, String data) throws Exception {
        return clients.make(one, "/limited/" + name, data, CreateMode.PERSISTENT);
    }

    @Test
    void whatIsThereIsCountedAsItComesAndGoes() throws Exception {
        make("before", "12");
        limit(track -> track.setCount(9));
        assertEquals(9, listed(0).getCount());
        assertEquals(-1, listed(0).getCountHardLimit());
        counts(2, 5);
        make("before/child", "1234");
        counts(3, 9);
        other.setData(limited, bytes("x"), -1);
        counts(3, 7);
        other.setData(limited, null, -1);
        counts(3, 6);
        one.multi(List.of(
            Op.delete(limited + "/before/child", -1),
            Op.create(limited + "/one", bytes("1"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
            Op.setData(limited + "/before", bytes(""), -1)));
        counts(3, 1);
        clients.make(one, "/limited-not", "not below it", CreateMode.PERSISTENT);
        counts(3, 1);
        assertEquals(0, other.exists(Quotas.statPath(limited), false).getVersion());
    }

    @Test
    void theCommandsChangeAndRemoveLimits() throws Exception {
        limit(track -> track.setBytes(20));
        limit(track -> track.setCountHardLimit(7));
        assertEquals("count=-1,bytes=20=;countHardLimit=7", listed(0).toString());
        StatsTrack which = new StatsTrack();
        which.setBytes(1);
        DelQuotaCommand.delQuota(one, limited, which);
        assertEquals(-1, listed(0).getBytes());
        assertEquals(7, listed(0).getCountHardLimit());
        assertThrows(IllegalArgumentException.class, () ->
            SetQuotaCommand.createQuota(one, make("below", ""), which));
        assertThrows(IllegalArgumentException.class, () ->
            SetQuotaCommand.createQuota(one, clients.root, which));
        DelQuotaCommand.delQuota(one, limited, null);
        assertNull(other.exists(Quotas.quotaPath(clients.root), false));
        assertThrows(NoNodeException.class, () -> listed(0));
        assertNotNull(other.exists(Quotas.quotaZookeeper, false));
    }

    @Test
    void aSoftLimitRefusesNothing() throws Exception {
        limit(track -> {
            track.setCount(1);
            track.setBytes(3);
        });
        make("more", "than that");
        counts(2, 12);
    }

    @Test
    void aHardLimitRefusesWhatWouldPassIt() throws Exception {
        limit(track -> {
            track.setCountHardLimit(2);
            track.setByteHardLimit(8);
        });
        assertThrows(QuotaExceededException.class, () -> make("a", "123456"));
        make("a", "12345");
        assertThrows(QuotaExceededException.class, () -> make("b", ""));
        assertThrows(QuotaExceededException.class, () -> other.setData(limited, bytes("1234"), -1));
        // The limit is told of first.
        assertThrows(QuotaExceededException.class, () -> other.setData(limited, bytes("1234"), 77));
        assertThrows(QuotaExceededException.class, () -> other.multi(List.of(
            Op.setData(limited, bytes("xyz"), -1),
            Op.create(limited + "/b", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT))));
        Stat stat = new Stat();
        assertEquals("abc", new String(other.getData(limited, false, stat)));
        assertEquals(0, stat.getVersion());
        counts(2, 8);
        other.delete(limited + "/a", -1);
        make("b", "");
        limit(track -> track.setCountHardLimit(3));
        make("c", "");
        assertThrows(QuotaExceededException.class, () -> make("d", ""));
    }

    @Test
    void nodesGoWithTheirSession() throws Exception {
        limit(track -> track.setCountHardLimit(2));
        ZooKeeper leaving = clients.at(1);
        clients.make(leaving, "/limited/e", "12", CreateMode.EPHEMERAL);
        counts(2, 5);
        assertThrows(QuotaExceededException.class, () -> make("a", ""));
        leaving.close();
        ZooKeepers.eventually("it is gone", () -> one.exists(limited + "/e", false) == null);
        counts(1, 3);
        make("a", "");
    }

    @Test
    @EnabledIfEnvironmentVariable(named = "QUORATE", matches = "1")
    void severalThingsAreCountedTogetherAndWhatMakesLessIsDone() throws Exception {
        limit(track -> track.setCountHardLimit(3));
        Op[] ops = new Op[3];
        for (int at = 0; at < ops.length; at++) {
            String path = limited + "/" + at;
            ops[at] = Op.create(path, null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        }
        assertThrows(QuotaExceededException.class, () -> one.multi(List.of(ops)));
        counts(1, 3);
        limit(track -> track.setByteHardLimit(1));
        one.setData(limited, bytes("12"), -1);
        counts(1, 2);
        String limits = Quotas.limitPath(limited);
        assertThrows(BadArgumentsException.class, () -> one.setData(limits, bytes("many"), -1));
        assertTrue(listed(0).getByteHardLimit() == 1, "they stay as they were");
    }
}
