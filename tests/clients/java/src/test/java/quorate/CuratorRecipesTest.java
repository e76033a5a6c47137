package quorate;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static quorate.ZooKeepers.bytes;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.api.transaction.TransactionOp;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** Curator's recipes by which clients share something; one client at each of two hosts. */
@EnabledIfEnvironmentVariable(named = ZooKeepers.VARIABLE, matches = ".+")
class CuratorRecipesTest {
    private Curators curators;

    @BeforeEach
    void connect() throws Exception {
        curators = new Curators();
    }

    @AfterEach
    void close() {
        curators.close();
    }

    private static String next(BlockingQueue<String> told) throws InterruptedException {
        String next = told.poll(ZooKeepers.SECONDS, TimeUnit.SECONDS);
        assertNotNull(next, "nothing was told in time");
        return next;
    }

    private boolean isThere(String path) throws Exception {
        return curators.other.checkExists().forPath(path) != null;
    }

    /** ZooKeeper tells its own servers here, which clients of a proxy could not reach. */
    @Test
    @EnabledIfEnvironmentVariable(named = "QUORATE", matches = "1")
    void aClientKeepsTheServersThatItWasGiven() throws Exception {
        String given = ZooKeepers.host(0);
        assertEquals(given, curators.one.getZookeeperClient().getCurrentConnectionString());
        assertEquals(0, curators.one.getConfig().forEnsemble().length);
        curators.one.create().creatingParentsIfNeeded().forPath(curators.root + "/a");
        assertEquals(given, curators.one.getZookeeperClient().getCurrentConnectionString());
    }

    @Test
    void cache() throws Exception {
        String root = curators.root;
        curators.one.create().forPath(root, bytes("root"));
        curators.one.create().forPath(root + "/before", bytes("x"));
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        CuratorCache cache = CuratorCache.build(curators.other, root);
        cache.listenable().addListener(CuratorCacheListener.builder()
            .forCreates(made -> told.add("made " + made.getPath()))
            .forChanges((from, to) -> told.add("set " + to.getPath()))
            .forDeletes(gone -> told.add("gone " + gone.getPath()))
            .forInitialized(() -> told.add("whole"))
            .build());
        cache.start();
        assertEquals(
            Set.of("made " + root, "made " + root + "/before"), Set.of(next(told), next(told)));
        assertEquals("whole", next(told));
        curators.one.create().creatingParentsIfNeeded().forPath(root + "/a/b", bytes("1"));
        assertEquals(Set.of("made " + root + "/a", "made " + root + "/a/b"),
            Set.of(next(told), next(told)));
        curators.one.setData().forPath(root + "/a/b", bytes("2"));
        assertEquals("set " + root + "/a/b", next(told));
        assertArrayEquals(bytes("2"), cache.get(root + "/a/b").orElseThrow().getData());
        curators.one.delete().deletingChildrenIfNeeded().forPath(root + "/a");
        assertEquals("gone " + root + "/a/b", next(told));
        assertEquals("gone " + root + "/a", next(told));
        assertEquals(2, cache.size());
        cache.close();
    }

    @Test
    void persistentNode() throws Exception {
        PersistentNode node = new PersistentNode(
            curators.one, CreateMode.EPHEMERAL, false, curators.root + "/node", bytes("x"));
        node.start();
        assertTrue(node.waitForInitialCreate(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        String path = node.getActualPath();
        long first = curators.other.checkExists().forPath(path).getCzxid();
        curators.other.delete().forPath(path);
        ZooKeepers.eventually("the node is made again", () -> {
            var stat = curators.other.checkExists().forPath(path);
            return stat != null && stat.getCzxid() > first;
        });
        assertArrayEquals(bytes("x"), curators.other.getData().forPath(path));
        node.setData(bytes("y"));
        ZooKeepers.eventually("the node is set",
            () -> new String(curators.other.getData().forPath(path)).equals("y"));
        node.close();
        assertNull(curators.other.checkExists().forPath(path));
    }

    @Test
    void persistentTtlNode() throws Exception {
        long ttlMs = 1000;
        String path = curators.root + "/node";
        PersistentTtlNode node = new PersistentTtlNode(
            curators.one, path, ttlMs, bytes("x"), true);
        node.start();
        assertTrue(node.waitForInitialCreate(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        ZooKeepers.eventually("it is touched",
            () -> curators.other.getChildren().forPath(path).size() == 1);
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(2 * ttlMs);
        while (System.nanoTime() < until) {
            assertTrue(isThere(path), "it is touched in time, so it stays");
            Thread.sleep(50);
        }
        node.close();
        ZooKeepers.eventually("nobody touches it, so it goes", () -> !isThere(path));
    }

    @Test
    void queue() throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        QueueConsumer<String> consumer = new QueueConsumer<>() {
            @Override
            public void consumeMessage(String message) {
                told.add(message);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        };
        QueueSerializer<String> texts = new QueueSerializer<>() {
            @Override
            public byte[] serialize(String item) {
                return bytes(item);
            }

            @Override
            public String deserialize(byte[] item) {
                return new String(item, StandardCharsets.UTF_8);
            }
        };
        DistributedQueue<String> producing =
            QueueBuilder.builder(curators.one, null, texts, curators.root).buildQueue();
        DistributedQueue<String> consuming = QueueBuilder
            .builder(curators.other, consumer, texts, curators.root)
            .lockPath(curators.root + "-locks").buildQueue();
        producing.start();
        for (int index = 0; index < 20; index++) {
            producing.put("item " + index);
        }
        assertTrue(producing.flushPuts(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        consuming.start();
        Set<String> found = new HashSet<>();
        for (int index = 0; index < 20; index++) {
            assertTrue(found.add(next(told)));
        }
        producing.close();
        consuming.close();
    }

    @Test
    void simpleQueue() throws Exception {
        SimpleDistributedQueue one = new SimpleDistributedQueue(curators.one, curators.root);
        SimpleDistributedQueue other = new SimpleDistributedQueue(curators.other, curators.root);
        for (int index = 0; index < 10; index++) {
            assertTrue((index % 2 == 0 ? one : other).offer(bytes("item " + index)));
        }
        for (int index = 0; index < 10; index++) {
            byte[] item = (index % 2 == 0 ? other : one).poll(ZooKeepers.SECONDS, TimeUnit.SECONDS);
            assertArrayEquals(bytes("item " + index), item);
        }
        assertNull(one.poll());
    }

    @Test
    void sharedCount() throws Exception {
        SharedCount one = new SharedCount(curators.one, curators.root, 3);
        SharedCount other = new SharedCount(curators.other, curators.root, 7);
        one.start();
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        other.addListener(new SharedCountListener() {
            @Override
            public void countHasChanged(SharedCountReader of, int count) {
                told.add(Integer.toString(count));
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        });
        other.start();
        assertEquals(3, other.getCount());
        one.setCount(4);
        assertEquals("4", next(told));
        VersionedValue<Integer> before = other.getVersionedValue();
        assertTrue(one.trySetCount(one.getVersionedValue(), 5));
        assertEquals("5", next(told));
        assertEquals(false, other.trySetCount(before, 6));
        one.close();
        other.close();
    }

    @Test
    void atomicLong() throws Exception {
        List<Thread> threads = new ArrayList<>();
        BlockingQueue<String> failures = new LinkedBlockingQueue<>();
        for (CuratorFramework client : List.of(curators.one, curators.other)) {
            DistributedAtomicLong count =
                new DistributedAtomicLong(client, curators.root, new RetryNTimes(100, 5));
            Thread thread = new Thread(() -> {
                for (int turn = 0; turn < 25; turn++) {
                    try {
                        if (!count.increment().succeeded()) {
                            failures.add("gave up");
                        }
                    } catch (Exception failure) {
                        failures.add(failure.toString());
                    }
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertNull(failures.poll());
        DistributedAtomicLong count =
            new DistributedAtomicLong(curators.other, curators.root, new RetryNTimes(0, 0));
        AtomicValue<Long> value = count.get();
        assertEquals(50L, value.postValue());
    }

    @Test
    void groupMember() throws Exception {
        GroupMember one = new GroupMember(curators.one, curators.root, "one", bytes("1"));
        GroupMember other = new GroupMember(curators.other, curators.root, "other", bytes("2"));
        one.start();
        other.start();
        for (GroupMember member : List.of(one, other)) {
            ZooKeepers.eventually("both are seen",
                () -> member.getCurrentMembers().keySet().equals(Set.of("one", "other")));
        }
        one.close();
        ZooKeepers.eventually("one is seen to be gone",
            () -> other.getCurrentMembers().keySet().equals(Set.of("other")));
        other.close();
    }

    @Test
    void transaction() throws Exception {
        String root = curators.root;
        TransactionOp one = curators.one.transactionOp();
        TransactionOp other = curators.other.transactionOp();
        List<CuratorTransactionResult> results = curators.one.transaction().forOperations(
            one.create().forPath(root, bytes("1")),
            one.create().withMode(CreateMode.EPHEMERAL).forPath(root + "/a"),
            one.setData().withVersion(0).forPath(root, bytes("2")),
            one.check().withVersion(1).forPath(root));
        assertEquals(4, results.size());
        assertEquals(root + "/a", results.get(1).getResultPath());
        assertEquals(1, results.get(2).getResultStat().getVersion());
        assertThrows(KeeperException.BadVersionException.class,
            () -> curators.other.transaction().forOperations(
                other.delete().forPath(root + "/a"),
                other.check().withVersion(7).forPath(root)));
        assertTrue(isThere(root + "/a"));
        assertArrayEquals(bytes("2"), curators.other.getData().forPath(root));
    }

    @Test
    void namesThatAreProtected() throws Exception {
        String path = curators.one.create()
            .creatingParentContainersIfNeeded()
            .withProtection()
            .withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
            .forPath(curators.root + "/node-", bytes("x"));
        assertArrayEquals(bytes("x"), curators.other.getData().forPath(path));
        curators.one.delete().guaranteed().forPath(path);
        assertNull(curators.other.checkExists().forPath(path));
        ZooKeepers.eventually("the container is gone", () -> !isThere(curators.root));
    }
}
