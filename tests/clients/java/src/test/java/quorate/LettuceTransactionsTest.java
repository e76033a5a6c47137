package quorate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SetArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Lettuce on a keyspace with transactions. */
class LettuceTransactionsTest {
    private RedisClient client;

    private StatefulRedisConnection<String, String> connect(ProtocolVersion protocol) {
        if (client == null) {
            RedisURI address = RedisURI.create(Endpoint.HOST, Endpoint.PORT);
            address.setDatabase(Endpoint.TRANSACTIONAL);
            address.setTimeout(Duration.ofSeconds(30));
            client = RedisClient.create(address);
            client.setOptions(ClientOptions.builder().protocolVersion(protocol).build());
        }
        return client.connect();
    }

    @AfterEach
    void close() {
        client.shutdown(Duration.ZERO, Duration.ofSeconds(5));
    }

    @ParameterizedTest
    @EnumSource(ProtocolVersion.class)
    void countersAndConditions(ProtocolVersion protocol) {
        RedisCommands<String, String> commands = connect(protocol).sync();
        String name = Endpoint.key("counter");
        String other = Endpoint.key("other");
        assertEquals(1, commands.incr(name));
        assertEquals(40, commands.incrby(name, 39));
        assertEquals(40.5, commands.incrbyfloat(name, 0.5));
        assertThrows(RedisCommandExecutionException.class, () -> commands.incr(name));
        assertFalse(commands.setnx(name, "2"));
        assertNull(commands.set(name, "3", SetArgs.Builder.nx().px(60_000)));
        assertEquals("OK", commands.set(other, "3", SetArgs.Builder.nx().px(60_000)));
        assertEquals(60, commands.ttl(other));
        assertFalse(commands.msetnx(Map.of(name, "5", other, "5")));
        assertEquals("3", commands.getset(other, "4"));
        assertEquals("4", commands.getdel(other));
    }

    @ParameterizedTest
    @EnumSource(ProtocolVersion.class)
    void transactions(ProtocolVersion protocol) {
        RedisCommands<String, String> commands = connect(protocol).sync();
        String name = Endpoint.key("transaction");
        assertEquals("OK", commands.multi());
        assertNull(commands.set(name, "1"));
        commands.incr(name);
        commands.get(name);
        TransactionResult result = commands.exec();
        assertFalse(result.wasDiscarded());
        assertEquals(List.of("OK", 2L, "2"), result.stream().collect(Collectors.toList()));
        commands.multi();
        commands.set(name, "other");
        assertEquals("OK", commands.discard());
        assertEquals("2", commands.get(name));
    }

    @ParameterizedTest
    @EnumSource(ProtocolVersion.class)
    void aWatchedKeyThatChangedStopsATransaction(ProtocolVersion protocol) {
        RedisCommands<String, String> commands = connect(protocol).sync();
        String name = Endpoint.key("watched");
        commands.set(name, "5");
        assertEquals("OK", commands.watch(name));
        connect(protocol).sync().incr(name);
        commands.multi();
        commands.set(name, "50");
        assertTrue(commands.exec().wasDiscarded());
        assertEquals("6", commands.get(name));
    }

    @ParameterizedTest
    @EnumSource(ProtocolVersion.class)
    void nothingIsLostOfWhatManyAdd(ProtocolVersion protocol) {
        String name = Endpoint.key("adders");
        List<RedisFuture<Long>> additions = new ArrayList<>();
        for (int number = 0; number < 4; number++) {
            StatefulRedisConnection<String, String> connection = connect(protocol);
            for (int turn = 0; turn < 50; turn++) {
                additions.add(connection.async().incr(name));
            }
        }
        RedisFuture<?>[] all = additions.toArray(new RedisFuture<?>[0]);
        assertTrue(LettuceFutures.awaitAll(Duration.ofSeconds(30), all));
        long distinct =
            additions.stream().map(each -> each.toCompletableFuture().join()).distinct().count();
        assertEquals(additions.size(), distinct);
        String total = Integer.toString(additions.size());
        assertEquals(total, connect(protocol).sync().get(name));
    }

    @ParameterizedTest
    @EnumSource(ProtocolVersion.class)
    void keysExpire(ProtocolVersion protocol) {
        RedisCommands<String, String> commands = connect(protocol).sync();
        String name = Endpoint.key("short");
        assertEquals("OK", commands.setex(name, 100, "x"));
        assertEquals(100, commands.ttl(name));
        assertTrue(commands.persist(name));
        assertEquals(-1, commands.ttl(name));
        assertTrue(commands.pexpire(name, Duration.ofMillis(200)));
        long deadline = System.nanoTime() + 30_000_000_000L;
        while (commands.get(name) != null) {
            assertTrue(System.nanoTime() < deadline, "it stays");
        }
        assertEquals(-2, commands.ttl(name));
    }
}
