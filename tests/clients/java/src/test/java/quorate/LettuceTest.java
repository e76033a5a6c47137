package quorate;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.KeyValue;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.ProtocolVersion;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Lettuce, with either protocol. */
class LettuceTest {
    private RedisClient client;
    private StatefulRedisConnection<String, String> connection;

    private RedisCommands<String, String> connect(ProtocolVersion protocol) {
        RedisURI address = RedisURI.create(Endpoint.HOST, Endpoint.PORT);
        address.setTimeout(Duration.ofSeconds(30));
        client = RedisClient.create(address);
        client.setOptions(ClientOptions.builder().protocolVersion(protocol).build());
        connection = client.connect();
        return connection.sync();
    }

    @AfterEach
    void close() {
        connection.close();
        client.shutdown(Duration.ZERO, Duration.ofSeconds(5));
    }

    @ParameterizedTest
    @EnumSource(ProtocolVersion.class)
    void values(ProtocolVersion protocol) {
        RedisCommands<String, String> commands = connect(protocol);
        String name = Endpoint.key("value");
        assertEquals("PONG", commands.ping());
        assertNull(commands.get(name));
        assertEquals("OK", commands.set(name, "hello"));
        assertEquals("hello", commands.get(name));
        assertEquals(5, commands.strlen(name));
        assertEquals("string", commands.type(name));
        assertEquals(-1, commands.ttl(name));
        assertEquals(1, commands.del(name));
        assertEquals(-2, commands.ttl(name));
        byte[] binary = {0, -1, '\r', '\n'};
        ByteArrayCodec codec = ByteArrayCodec.INSTANCE;
        try (StatefulRedisConnection<byte[], byte[]> raw = client.connect(codec)) {
            raw.sync().set(name.getBytes(), binary);
            assertArrayEquals(binary, raw.sync().get(name.getBytes()));
        }
    }

    @ParameterizedTest
    @EnumSource(ProtocolVersion.class)
    void manyKeys(ProtocolVersion protocol) {
        RedisCommands<String, String> commands = connect(protocol);
        String one = Endpoint.key("one");
        String two = Endpoint.key("two");
        String absent = Endpoint.key("absent");
        assertEquals("OK", commands.mset(Map.of(one, "1", two, "2")));
        List<KeyValue<String, String>> values = commands.mget(one, absent, two);
        assertEquals("1", values.get(0).getValue());
        assertFalse(values.get(1).hasValue());
        assertEquals("2", values.get(2).getValue());
        assertEquals(2, commands.unlink(one, absent, two));
    }

    @ParameterizedTest
    @EnumSource(ProtocolVersion.class)
    void manyCommandsInFlight(ProtocolVersion protocol) {
        connect(protocol);
        RedisAsyncCommands<String, String> commands = connection.async();
        String name = Endpoint.key("flight");
        List<RedisFuture<?>> writes = new ArrayList<>();
        List<RedisFuture<String>> reads = new ArrayList<>();
        for (int index = 0; index < 500; index++) {
            writes.add(commands.set(name, Integer.toString(index)));
            reads.add(commands.get(name));
        }
        RedisFuture<?>[] all = reads.toArray(new RedisFuture<?>[0]);
        assertTrue(LettuceFutures.awaitAll(Duration.ofSeconds(30), all));
        for (int index = 0; index < 500; index++) {
            assertTrue(writes.get(index).isDone());
            assertEquals(Integer.toString(index), reads.get(index).toCompletableFuture().join());
        }
    }

    @ParameterizedTest
    @EnumSource(ProtocolVersion.class)
    void scan(ProtocolVersion protocol) {
        RedisCommands<String, String> commands = connect(protocol);
        String base = Endpoint.key("scan");
        Set<String> expected = new HashSet<>();
        for (int index = 0; index < 200; index++) {
            expected.add(base + ":" + index);
            commands.set(base + ":" + index, "v");
        }
        ScanArgs arguments = ScanArgs.Builder.matches(base + ":*").limit(20);
        Set<String> found = new HashSet<>();
        ScanIterator.scan(commands, arguments).forEachRemaining(found::add);
        assertEquals(expected, found);
    }

    @ParameterizedTest
    @EnumSource(ProtocolVersion.class)
    void lookingAround(ProtocolVersion protocol) {
        RedisCommands<String, String> commands = connect(protocol);
        assertTrue(commands.info().contains("loading:0"));
        assertTrue(commands.configGet("save").containsKey("save"));
        assertEquals("OK", commands.clientSetname("suite"));
        assertEquals(2, commands.time().size());
        assertEquals("OK", commands.select(0));
    }

    @ParameterizedTest
    @EnumSource(ProtocolVersion.class)
    @EnabledIfEnvironmentVariable(named = "QUORATE", matches = "1")
    void refusals(ProtocolVersion protocol) {
        String name = Endpoint.key("refused");
        Map<String, Consumer<RedisCommands<String, String>>> refused = Map.of(
            "INCR", commands -> commands.incr(name),
            "APPEND", commands -> commands.append(name, "x"),
            "SETNX", commands -> commands.setnx(name, "x"),
            "GETDEL", commands -> commands.getdel(name),
            "EXPIRE", commands -> commands.expire(name, 10));
        RedisCommands<String, String> commands = connect(protocol);
        refused.forEach((command, action) -> {
            RedisCommandExecutionException error = assertThrows(
                RedisCommandExecutionException.class, () -> action.accept(commands), command);
            String text = error.getMessage();
            assertTrue(text.contains("this keyspace is linearizable"), text);
        });
        assertThrows(RedisCommandExecutionException.class, commands::multi);
        assertThrows(RedisCommandExecutionException.class, () -> commands.set(name, "x"));
        assertEquals("OK", commands.discard());
        assertNull(commands.get(name));
    }
}
