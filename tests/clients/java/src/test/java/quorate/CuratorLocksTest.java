package quorate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** Curator's recipes by which clients wait for each other; one client at each of two hosts. */
@EnabledIfEnvironmentVariable(named = ZooKeepers.VARIABLE, matches = ".+")
class CuratorLocksTest {
    /** How long somebody waits for what is not free. */
    private static final int SHORT_MS = 200;
    private Curators curators;

    @BeforeEach
    void connect() throws Exception {
        curators = new Curators();
    }

    @AfterEach
    void close() {
        curators.close();
    }

    private interface Task<T> {
        T run() throws Exception;
    }

    private static <T> CompletableFuture<T> start(Task<T> task) {
        CompletableFuture<T> done = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                done.complete(task.run());
            } catch (Exception failure) {
                done.completeExceptionally(failure);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return done;
    }

    private static <T> T get(CompletableFuture<T> future) throws Exception {
        return future.get(ZooKeepers.SECONDS, TimeUnit.SECONDS);
    }

    private static void isWaiting(CompletableFuture<?> future) {
        assertThrows(TimeoutException.class, () -> future.get(SHORT_MS, TimeUnit.MILLISECONDS));
    }

    @Test
    void mutex() throws Exception {
        InterProcessMutex one = new InterProcessMutex(curators.one, curators.root);
        InterProcessMutex other = new InterProcessMutex(curators.other, curators.root);
        one.acquire();
        one.acquire();
        assertFalse(other.acquire(SHORT_MS, TimeUnit.MILLISECONDS));
        one.release();
        CompletableFuture<Boolean> waiting =
            start(() -> other.acquire(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        isWaiting(waiting);
        one.release();
        assertTrue(get(waiting));
        assertFalse(one.acquire(SHORT_MS, TimeUnit.MILLISECONDS));
        assertEquals(1, one.getParticipantNodes().size());
    }

    @Test
    void mutexOfMany() throws Exception {
        AtomicInteger inside = new AtomicInteger();
        List<CompletableFuture<Integer>> all = new ArrayList<>();
        for (int number = 0; number < 6; number++) {
            CuratorFramework client = number % 2 == 0 ? curators.one : curators.other;
            all.add(start(() -> {
                InterProcessMutex mutex = new InterProcessMutex(client, curators.root);
                int most = 0;
                for (int turn = 0; turn < 5; turn++) {
                    mutex.acquire();
                    most = Math.max(most, inside.incrementAndGet());
                    inside.decrementAndGet();
                    mutex.release();
                }
                return most;
            }));
        }
        for (CompletableFuture<Integer> most : all) {
            assertEquals(1, get(most));
        }
    }

    @Test
    void semaphoreMutex() throws Exception {
        InterProcessSemaphoreMutex one =
            new InterProcessSemaphoreMutex(curators.one, curators.root);
        InterProcessSemaphoreMutex other =
            new InterProcessSemaphoreMutex(curators.other, curators.root);
        one.acquire();
        assertFalse(one.acquire(SHORT_MS, TimeUnit.MILLISECONDS));
        assertFalse(other.acquire(SHORT_MS, TimeUnit.MILLISECONDS));
        one.release();
        assertTrue(other.acquire(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        other.release();
    }

    @Test
    void readWriteLock() throws Exception {
        InterProcessReadWriteLock one = new InterProcessReadWriteLock(curators.one, curators.root);
        InterProcessReadWriteLock other =
            new InterProcessReadWriteLock(curators.other, curators.root);
        one.readLock().acquire();
        assertTrue(other.readLock().acquire(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        CompletableFuture<Boolean> writing =
            start(() -> one.writeLock().acquire(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        isWaiting(writing);
        one.readLock().release();
        isWaiting(writing);
        other.readLock().release();
        assertTrue(get(writing));
        assertFalse(other.readLock().acquire(SHORT_MS, TimeUnit.MILLISECONDS));
        assertFalse(other.writeLock().acquire(SHORT_MS, TimeUnit.MILLISECONDS));
    }

    @Test
    void semaphore() throws Exception {
        InterProcessSemaphoreV2 one =
            new InterProcessSemaphoreV2(curators.one, curators.root, 2);
        InterProcessSemaphoreV2 other =
            new InterProcessSemaphoreV2(curators.other, curators.root, 2);
        Lease first = one.acquire(ZooKeepers.SECONDS, TimeUnit.SECONDS);
        Lease second = other.acquire(ZooKeepers.SECONDS, TimeUnit.SECONDS);
        assertNotNull(first);
        assertNotNull(second);
        assertNull(one.acquire(SHORT_MS, TimeUnit.MILLISECONDS));
        assertNull(other.acquire(SHORT_MS, TimeUnit.MILLISECONDS));
        one.returnLease(first);
        assertNotNull(other.acquire(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        assertEquals(2, one.getParticipantNodes().size());
    }

    @Test
    void aLockOfOneWhoIsGoneIsFree() throws Exception {
        CuratorFramework gone = curators.at(2);
        new InterProcessMutex(gone, curators.root).acquire();
        InterProcessMutex other = new InterProcessMutex(curators.other, curators.root);
        assertFalse(other.acquire(SHORT_MS, TimeUnit.MILLISECONDS));
        gone.close();
        assertTrue(other.acquire(ZooKeepers.SECONDS, TimeUnit.SECONDS));
    }

    @Test
    void leaderLatch() throws Exception {
        LeaderLatch one = new LeaderLatch(curators.one, curators.root, "one");
        LeaderLatch other = new LeaderLatch(curators.other, curators.root, "other");
        one.start();
        assertTrue(one.await(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        other.start();
        assertFalse(other.await(SHORT_MS, TimeUnit.MILLISECONDS));
        assertEquals("one", other.getLeader().getId());
        assertEquals(2, other.getParticipants().size());
        one.close();
        assertTrue(other.await(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        assertEquals("other", other.getLeader().getId());
        other.close();
    }

    @Test
    void leaderSelector() throws Exception {
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        List<CompletableFuture<Integer>> turns = new ArrayList<>();
        List<LeaderSelector> selectors = new ArrayList<>();
        for (CuratorFramework client : List.of(curators.one, curators.other, curators.at(2))) {
            CompletableFuture<Integer> twice = new CompletableFuture<>();
            AtomicInteger led = new AtomicInteger();
            LeaderSelector selector = new LeaderSelector(
                client, curators.root, new LeaderSelectorListenerAdapter() {
                    @Override
                    public void takeLeadership(CuratorFramework of) {
                        most.accumulateAndGet(inside.incrementAndGet(), Math::max);
                        if (led.incrementAndGet() == 2) {
                            twice.complete(2);
                        }
                        inside.decrementAndGet();
                    }
                });
            selector.autoRequeue();
            selector.start();
            selectors.add(selector);
            turns.add(twice);
        }
        for (CompletableFuture<Integer> twice : turns) {
            get(twice);
        }
        selectors.forEach(LeaderSelector::close);
        assertEquals(1, most.get());
    }

    @Test
    void barrier() throws Exception {
        DistributedBarrier one = new DistributedBarrier(curators.one, curators.root);
        DistributedBarrier other = new DistributedBarrier(curators.other, curators.root);
        one.setBarrier();
        CompletableFuture<Boolean> waiting =
            start(() -> other.waitOnBarrier(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        isWaiting(waiting);
        one.removeBarrier();
        assertTrue(get(waiting));
        assertTrue(one.waitOnBarrier(SHORT_MS, TimeUnit.MILLISECONDS));
    }

    @Test
    void doubleBarrier() throws Exception {
        DistributedDoubleBarrier one =
            new DistributedDoubleBarrier(curators.one, curators.root, 2);
        DistributedDoubleBarrier other =
            new DistributedDoubleBarrier(curators.other, curators.root, 2);
        CompletableFuture<Boolean> entering =
            start(() -> one.enter(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        isWaiting(entering);
        assertTrue(other.enter(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        assertTrue(get(entering));
        CompletableFuture<Boolean> leaving =
            start(() -> one.leave(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        isWaiting(leaving);
        assertTrue(other.leave(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        assertTrue(get(leaving));
    }
}
