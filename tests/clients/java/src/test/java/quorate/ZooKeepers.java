package quorate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/** Clients of ZooKeeper's own library, each with a node of its own to work below. */
final class ZooKeepers implements AutoCloseable {
    /** Set if the server under test has hosts that ZooKeeper's clients can ask. */
    static final String VARIABLE = "ZOOKEEPER_ENDPOINTS";
    static final int SECONDS = 20;
    static final int TIMEOUT_MS = 10_000;

    final String root = "/clients-java-" + UUID.randomUUID();
    private final List<ZooKeeper> all = new ArrayList<>();

    /** Where the host of a number is, from 0 on. */
    static String host(int number) {
        String[] hosts = System.getenv(VARIABLE).split(",");
        return hosts[number % hosts.length];
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** A client of a host. */
    ZooKeeper at(int number) throws Exception {
        return to(host(number), TIMEOUT_MS, new Events());
    }

    /** A client of what is at an address, which tells of its connection. */
    ZooKeeper to(String address, int timeoutMs, Events events) throws Exception {
        ZooKeeper client = new ZooKeeper(address, timeoutMs, events);
        all.add(client);
        assertTrue(events.connected.await(SECONDS, TimeUnit.SECONDS), "not connected");
        if (all.size() == 1) {
            makeRoot(client);
        }
        return client;
    }

    /** A busy disk may keep it waiting for too long: it may be there then, or not. */
    private void makeRoot(ZooKeeper client) throws Exception {
        for (int more = 9;; more--) {
            try {
                if (client.exists(root, false) == null) {
                    client.create(root, new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                }
                return;
            } catch (KeeperException.ConnectionLossException
                    | KeeperException.NodeExistsException lost) {
                if (more == 0) {
                    throw lost;
                }
            }
        }
    }

    /** Makes a node below the root; where it is. */
    String make(ZooKeeper client, String name, String data, CreateMode mode) throws Exception {
        return client.create(root + name, bytes(data), Ids.OPEN_ACL_UNSAFE, mode);
    }

    /** Waits until a condition holds. */
    static void eventually(String what, Callable<Boolean> condition) throws Exception {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (!condition.call()) {
            assertTrue(System.nanoTime() < until, "not in time: " + what);
            Thread.sleep(10);
        }
    }

    @Override
    public void close() throws Exception {
        for (ZooKeeper client : all) {
            client.close();
        }
    }

    /** What a watcher is told, in order. */
    static final class Events implements Watcher {
        final CountDownLatch connected = new CountDownLatch(1);
        final BlockingQueue<Event.KeeperState> states = new LinkedBlockingQueue<>();
        private final BlockingQueue<WatchedEvent> nodes = new LinkedBlockingQueue<>();

        @Override
        public void process(WatchedEvent event) {
            if (event.getType() != Event.EventType.None) {
                nodes.add(event);
                return;
            }
            states.add(event.getState());
            if (event.getState() == Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        }

        /** The next event is this one. */
        void next(Event.EventType type, String path) throws InterruptedException {
            assertEquals(type + " " + path, next());
        }

        /** The next events are these, in any order. */
        void all(String... expected) throws InterruptedException {
            Set<String> told = new HashSet<>();
            for (int index = 0; index < expected.length; index++) {
                told.add(next());
            }
            assertEquals(Set.of(expected), told);
        }

        private String next() throws InterruptedException {
            WatchedEvent event = nodes.poll(SECONDS, TimeUnit.SECONDS);
            assertNotNull(event, "no event");
            return event.getType() + " " + event.getPath();
        }

        /** Nothing more was told before what is answered now. */
        void none(ZooKeeper client) throws InterruptedException {
            CountDownLatch answered = new CountDownLatch(1);
            client.sync("/", (code, path, context) -> answered.countDown(), null);
            assertTrue(answered.await(SECONDS, TimeUnit.SECONDS), "no answer");
            assertEquals(null, nodes.poll(), "nothing more is told");
        }

        /** Waits until the client was told of a state. */
        void state(Event.KeeperState wanted) throws InterruptedException {
            Event.KeeperState state;
            do {
                state = states.poll(SECONDS, TimeUnit.SECONDS);
                assertNotNull(state, "never " + wanted);
            } while (state != wanted);
        }
    }
}
