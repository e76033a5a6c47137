package quorate;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;

/** Curator's clients, one of each of two hosts, with a node to work below. */
final class Curators implements AutoCloseable {
    final String root = "/clients-curator-" + UUID.randomUUID();
    final CuratorFramework one;
    final CuratorFramework other;
    private final List<CuratorFramework> all = new ArrayList<>();

    Curators() throws Exception {
        one = at(0);
        other = at(1);
    }

    /** A client of the host of a number. */
    CuratorFramework at(int number) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
            .connectString(ZooKeepers.host(number))
            .sessionTimeoutMs(10_000)
            .connectionTimeoutMs(10_000)
            .retryPolicy(new RetryNTimes(5, 100))
            .build();
        all.add(client);
        client.start();
        assertTrue(client.blockUntilConnected(ZooKeepers.SECONDS, TimeUnit.SECONDS));
        return client;
    }

    @Override
    public void close() {
        all.forEach(CuratorFramework::close);
    }
}
