package quorate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.SetParams;

/** Jedis on a keyspace with transactions. */
class JedisTransactionsTest {
    private static final int ADDERS = 8;
    private static final int ADDITIONS = 20;

    private static Jedis connect(RedisProtocol protocol) {
        return new Jedis(
            new HostAndPort(Endpoint.HOST, Endpoint.PORT),
            DefaultJedisClientConfig.builder()
                .protocol(protocol)
                .database(Endpoint.TRANSACTIONAL)
                .socketTimeoutMillis(30_000)
                .build());
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void counters(RedisProtocol protocol) {
        try (Jedis client = connect(protocol)) {
            String name = Endpoint.key("counter");
            assertEquals(1, client.incr(name));
            assertEquals(42, client.incrBy(name, 41));
            assertEquals(40, client.decrBy(name, 2));
            assertEquals(40.5, client.incrByFloat(name, 0.5));
            JedisDataException error =
                assertThrows(JedisDataException.class, () -> client.incr(name));
            assertEquals("ERR value is not an integer or out of range", error.getMessage());
            assertEquals(5, client.append(name, "!"));
            assertEquals("40.5!", client.getDel(name));
            assertNull(client.get(name));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void conditions(RedisProtocol protocol) {
        try (Jedis client = connect(protocol)) {
            String name = Endpoint.key("first");
            String other = Endpoint.key("second");
            SetParams lock = SetParams.setParams().nx().px(60_000);
            assertEquals("OK", client.set(name, "1", lock));
            assertNull(client.set(name, "2", lock));
            assertEquals(60, client.ttl(name));
            assertNull(client.set(other, "3", SetParams.setParams().xx()));
            assertEquals(0, client.msetnx(name, "5", other, "5"));
            assertEquals("1", client.setGet(name, "6"));
            assertEquals(-1, client.ttl(name));
            assertEquals(1, client.del(name, other));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void transactions(RedisProtocol protocol) {
        try (Jedis client = connect(protocol)) {
            String name = Endpoint.key("transaction");
            Transaction transaction = client.multi();
            transaction.set(name, "1");
            Response<Long> counted = transaction.incr(name);
            Response<String> read = transaction.get(name);
            assertEquals(List.of("OK", 2L, "2"), transaction.exec());
            assertEquals(2, counted.get());
            assertEquals("2", read.get());

            // As in Redis, what fails leaves the others be.
            Transaction failing = client.multi();
            failing.set(name, "text");
            failing.incr(name);
            failing.append(name, "!");
            assertTrue(failing.exec().get(1) instanceof JedisDataException);
            assertEquals("text!", client.get(name));

            Transaction discarded = client.multi();
            discarded.set(name, "other");
            assertEquals("OK", discarded.discard());
            assertEquals("text!", client.get(name));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void aWatchedKeyThatChangedStopsATransaction(RedisProtocol protocol) {
        try (Jedis client = connect(protocol); Jedis other = connect(protocol)) {
            String name = Endpoint.key("watched");
            client.set(name, "5");
            assertEquals("OK", client.watch(name));
            other.incr(name);
            Transaction stale = client.multi();
            stale.set(name, "50");
            assertNull(stale.exec());
            assertEquals("6", client.get(name));
            assertEquals("OK", client.watch(name));
            Transaction fresh = client.multi();
            fresh.set(name, "60");
            assertEquals(List.of("OK"), fresh.exec());
            assertEquals("60", other.get(name));
        }
    }

    /** Adds one to a key by WATCH, as often as it takes. */
    private static void oneMore(Jedis client, String name) {
        Transaction transaction;
        do {
            client.watch(name);
            String value = client.get(name);
            int next = value == null ? 1 : Integer.parseInt(value) + 1;
            transaction = client.multi();
            transaction.set(name, Integer.toString(next));
        } while (transaction.exec() == null);
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void nothingIsLostOfWhatManyAdd(RedisProtocol protocol) throws InterruptedException {
        String name = Endpoint.key("adders");
        String watched = Endpoint.key("watchers");
        Set<Throwable> failures = ConcurrentHashMap.newKeySet();
        Thread[] threads = new Thread[ADDERS];
        for (int number = 0; number < ADDERS; number++) {
            threads[number] = new Thread(() -> {
                try (Jedis client = connect(protocol)) {
                    for (int turn = 0; turn < ADDITIONS; turn++) {
                        client.incr(name);
                        if (turn % 5 == 0) {
                            oneMore(client, watched);
                        }
                    }
                }
            });
            threads[number].setUncaughtExceptionHandler((thread, e) -> failures.add(e));
            threads[number].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(Set.of(), failures);
        try (Jedis client = connect(protocol)) {
            assertEquals(Integer.toString(ADDERS * ADDITIONS), client.get(name));
            assertEquals(Integer.toString(ADDERS * ADDITIONS / 5), client.get(watched));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void keysExpire(RedisProtocol protocol) {
        try (Jedis client = connect(protocol)) {
            String name = Endpoint.key("short");
            assertEquals("OK", client.setex(name, 100, "x"));
            assertEquals(100, client.ttl(name));
            assertEquals(1, client.persist(name));
            assertEquals(-1, client.ttl(name));
            assertEquals(1, client.pexpire(name, 200));
            long deadline = System.nanoTime() + 30_000_000_000L;
            while (client.get(name) != null) {
                assertTrue(System.nanoTime() < deadline, "it stays");
            }
            assertEquals(-2, client.ttl(name));
        }
    }
}
