package quorate;

import static org.apache.zookeeper.Watcher.Event.EventType.NodeChildrenChanged;
import static org.apache.zookeeper.Watcher.Event.EventType.NodeCreated;
import static org.apache.zookeeper.Watcher.Event.EventType.NodeDataChanged;
import static org.apache.zookeeper.Watcher.Event.EventType.NodeDeleted;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import quorate.ZooKeepers.Events;

/** ZooKeeper's own client: sessions that lose their connection, and come to another host. */
@EnabledIfEnvironmentVariable(named = ZooKeepers.VARIABLE, matches = ".+")
class ZooKeeperSessionsTest {
    /** The shortest time-out that a host grants. */
    private static final int SHORTEST_MS = 4000;
    private final ZooKeepers clients = new ZooKeepers();
    private final Events states = new Events();
    private Link link;
    private ZooKeeper moving;
    private ZooKeeper other;

    @BeforeEach
    void connect() throws Exception {
        link = new Link(ZooKeepers.host(0));
        other = clients.at(1);
        moving = clients.to(link.address(), ZooKeepers.TIMEOUT_MS, states);
    }

    @AfterEach
    void close() throws Exception {
        clients.close();
        link.close();
    }

    /** Cuts the client off and leads it to another host. */
    private void move(int host) throws Exception {
        link.cut();
        states.state(KeeperState.Disconnected);
        link.lead(ZooKeepers.host(host));
        states.state(KeeperState.SyncConnected);
    }

    @Test
    void aSessionGoesOnAtEachHost() throws Exception {
        String node = clients.make(moving, "/node", "", CreateMode.EPHEMERAL);
        long session = moving.getSessionId();
        for (int host : new int[] {1, 2, 0}) {
            move(host);
            assertEquals(session, moving.getSessionId());
            assertEquals(session, moving.exists(node, false).getEphemeralOwner());
            clients.make(moving, "/at-" + host, "", CreateMode.EPHEMERAL);
        }
        assertEquals(4, other.getChildren(clients.root, false).size());
        moving.close();
        assertEquals(0, other.getChildren(clients.root, false).size());
    }

    @Test
    void whatIsWatchedIsToldAtTheNextHost() throws Exception {
        String changed = clients.make(other, "/changed", "", CreateMode.PERSISTENT);
        String same = clients.make(other, "/same", "", CreateMode.PERSISTENT);
        String gone = clients.make(other, "/gone", "", CreateMode.PERSISTENT);
        String made = clients.root + "/made";
        Events data = new Events();
        Events later = new Events();
        Events end = new Events();
        Events begin = new Events();
        Events children = new Events();
        Events always = new Events();
        moving.getData(changed, data, null);
        moving.getData(same, later, null);
        moving.exists(gone, end);
        assertNull(moving.exists(made, begin));
        moving.getChildren(clients.root, children);
        moving.addWatch(clients.root, always, AddWatchMode.PERSISTENT_RECURSIVE);
        link.cut();
        states.state(KeeperState.Disconnected);
        other.setData(changed, new byte[1], -1);
        other.delete(gone, -1);
        clients.make(other, "/made", "", CreateMode.PERSISTENT);
        link.lead(ZooKeepers.host(2));
        states.state(KeeperState.SyncConnected);
        data.next(NodeDataChanged, changed);
        end.next(NodeDeleted, gone);
        begin.next(NodeCreated, made);
        children.next(NodeChildrenChanged, clients.root);
        // The client tells whoever watches all of it of each event that it gets.
        always.all(
            NodeDataChanged + " " + changed, NodeDeleted + " " + gone, NodeCreated + " " + made);
        // Of what happens from now on those are told who were not told yet.
        other.setData(same, new byte[1], -1);
        later.next(NodeDataChanged, same);
        other.delete(made, -1);
        always.next(NodeDataChanged, same);
        always.next(NodeDeleted, made);
        for (Events none : new Events[] {data, later, end, begin, children, always}) {
            none.none(moving);
        }
    }

    @Test
    void aClientThatIsSilentForTooLongLosesItsSession() throws Exception {
        Events silent = new Events();
        ZooKeeper client = clients.to(link.address(), SHORTEST_MS, silent);
        String node = clients.make(client, "/node", "", CreateMode.EPHEMERAL);
        Events events = new Events();
        assertNotNull(other.exists(node, events));
        link.cut();
        silent.state(KeeperState.Disconnected);
        events.next(NodeDeleted, node);
        link.lead(ZooKeepers.host(2));
        silent.state(KeeperState.Expired);
        assertThrows(KeeperException.SessionExpiredException.class,
            () -> client.exists(node, false));
    }

    @Test
    void aClientChoosesAnotherHost() throws Exception {
        String node = clients.make(moving, "/node", "", CreateMode.EPHEMERAL);
        moving.updateServerList(ZooKeepers.host(2));
        states.state(KeeperState.Disconnected);
        states.state(KeeperState.SyncConnected);
        assertEquals(moving.getSessionId(), other.exists(node, false).getEphemeralOwner());
        moving.setData(node, new byte[1], 0);
    }

    /** A server of ZooKeeper closes the right client's connection before it looks at a password. */
    @Test
    @EnabledIfEnvironmentVariable(named = "QUORATE", matches = "1")
    void nobodyGoesOnWithTheSessionOfAnother() throws Exception {
        String node = clients.make(moving, "/node", "", CreateMode.EPHEMERAL);
        Events events = new Events();
        String host = ZooKeepers.host(2);
        byte[] password = new byte[16];
        try (ZooKeeper liar = new ZooKeeper(
                host, ZooKeepers.TIMEOUT_MS, events, moving.getSessionId(), password)) {
            events.state(KeeperState.Expired);
        }
        assertNotNull(other.exists(node, false));
        assertEquals(1, moving.setData(node, new byte[1], 0).getVersion());
    }
}
