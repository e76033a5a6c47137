package quorate;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;

/** Jedis, with either protocol. */
class JedisTest {
    private static final HostAndPort ADDRESS = new HostAndPort(Endpoint.HOST, Endpoint.PORT);

    private static Jedis connect(RedisProtocol protocol) {
        return new Jedis(
            ADDRESS, DefaultJedisClientConfig.builder().protocol(protocol).build());
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void values(RedisProtocol protocol) {
        try (Jedis client = connect(protocol)) {
            String name = Endpoint.key("value");
            assertEquals("PONG", client.ping());
            assertNull(client.get(name));
            assertEquals("OK", client.set(name, "hello"));
            assertEquals("hello", client.get(name));
            assertEquals(5, client.strlen(name));
            assertEquals("ell", client.getrange(name, 1, 3));
            assertEquals("string", client.type(name));
            assertEquals(-1, client.ttl(name));
            assertEquals(1, client.del(name));
            assertEquals(-2, client.ttl(name));
            byte[] binary = {0, -1, '\r', '\n'};
            client.set(name.getBytes(), binary);
            assertArrayEquals(binary, client.get(name.getBytes()));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void manyKeys(RedisProtocol protocol) {
        try (Jedis client = connect(protocol)) {
            String one = Endpoint.key("one");
            String two = Endpoint.key("two");
            String absent = Endpoint.key("absent");
            assertEquals("OK", client.mset(one, "1", two, "2"));
            assertEquals(Arrays.asList("1", null, "2"), client.mget(one, absent, two));
            assertEquals(2, client.exists(one, absent, two));
            assertEquals(2, client.unlink(one, absent, two));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void pipeline(RedisProtocol protocol) {
        try (Jedis client = connect(protocol)) {
            String name = Endpoint.key("pipeline");
            Pipeline pipeline = client.pipelined();
            Response<String> last = null;
            for (int index = 0; index < 500; index++) {
                pipeline.set(name, Integer.toString(index));
                last = pipeline.get(name);
            }
            pipeline.sync();
            assertEquals("499", last.get());
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void scan(RedisProtocol protocol) {
        try (Jedis client = connect(protocol)) {
            String base = Endpoint.key("scan");
            Set<String> expected = new HashSet<>();
            for (int index = 0; index < 200; index++) {
                expected.add(base + ":" + index);
                client.set(base + ":" + index, "v");
            }
            Set<String> found = new HashSet<>();
            ScanParams parameters = new ScanParams().match(base + ":*").count(20);
            String cursor = ScanParams.SCAN_POINTER_START;
            do {
                ScanResult<String> page = client.scan(cursor, parameters);
                found.addAll(page.getResult());
                cursor = page.getCursor();
            } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
            assertEquals(expected, found);
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void lookingAround(RedisProtocol protocol) {
        try (Jedis client = connect(protocol)) {
            assertTrue(client.info().contains("loading:0"));
            assertTrue(client.configGet("save").containsKey("save"));
            assertEquals("OK", client.clientSetname("suite"));
            assertEquals("OK", client.select(0));
            JedisDataException error =
                assertThrows(JedisDataException.class, () -> client.select(99999));
            assertEquals("ERR DB index is out of range", error.getMessage());
        }
    }

    @Test
    void poolSharedByThreads() throws InterruptedException {
        try (JedisPooled client = new JedisPooled(ADDRESS)) {
            String base = Endpoint.key("pool");
            Set<Throwable> failures = java.util.concurrent.ConcurrentHashMap.newKeySet();
            Thread[] threads = new Thread[8];
            for (int number = 0; number < threads.length; number++) {
                String name = base + ":" + number;
                threads[number] = new Thread(() -> {
                    for (int index = 0; index < 50; index++) {
                        client.set(name, Integer.toString(index));
                        assertEquals(Integer.toString(index), client.get(name));
                    }
                });
                threads[number].setUncaughtExceptionHandler((thread, e) -> failures.add(e));
                threads[number].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(Set.of(), failures);
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    @EnabledIfEnvironmentVariable(named = "QUORATE", matches = "1")
    void refusals(RedisProtocol protocol) {
        String name = Endpoint.key("refused");
        Map<String, Consumer<Jedis>> refused = Map.of(
            "INCR", client -> client.incr(name),
            "APPEND", client -> client.append(name, "x"),
            "SETNX", client -> client.setnx(name, "x"),
            "SET NX", client -> client.set(name, "x", SetParams.setParams().nx()),
            "GETDEL", client -> client.getDel(name),
            "EXPIRE", client -> client.expire(name, 10),
            "WATCH", client -> client.watch(name));
        try (Jedis client = connect(protocol)) {
            refused.forEach((command, action) -> {
                JedisDataException error =
                    assertThrows(JedisDataException.class, () -> action.accept(client), command);
                String text = error.getMessage();
                assertTrue(text.contains("this keyspace is linearizable"), text);
            });
            assertNull(client.get(name));
        }
    }
}
