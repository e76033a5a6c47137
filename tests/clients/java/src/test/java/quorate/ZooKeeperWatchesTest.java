package quorate;

import static org.apache.zookeeper.Watcher.Event.EventType.ChildWatchRemoved;
import static org.apache.zookeeper.Watcher.Event.EventType.DataWatchRemoved;
import static org.apache.zookeeper.Watcher.Event.EventType.NodeChildrenChanged;
import static org.apache.zookeeper.Watcher.Event.EventType.NodeCreated;
import static org.apache.zookeeper.Watcher.Event.EventType.NodeDataChanged;
import static org.apache.zookeeper.Watcher.Event.EventType.NodeDeleted;
import static org.apache.zookeeper.Watcher.Event.EventType.PersistentWatchRemoved;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.WatcherType;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import quorate.ZooKeepers.Events;

/** ZooKeeper's own client: a client of one host is told what one of another host does. */
@EnabledIfEnvironmentVariable(named = ZooKeepers.VARIABLE, matches = ".+")
class ZooKeeperWatchesTest {
    private final ZooKeepers clients = new ZooKeepers();
    private final Events events = new Events();
    private ZooKeeper watching;
    private ZooKeeper other;

    @BeforeEach
    void connect() throws Exception {
        watching = clients.at(0);
        other = clients.at(1);
    }

    @AfterEach
    void close() throws Exception {
        clients.close();
    }

    @Test
    void aWatchIsToldOnce() throws Exception {
        String node = clients.root + "/node";
        assertNull(watching.exists(node, events));
        clients.make(other, "/node", "", CreateMode.PERSISTENT);
        events.next(NodeCreated, node);
        watching.getData(node, events, null);
        other.setData(node, new byte[1], -1);
        events.next(NodeDataChanged, node);
        other.setData(node, new byte[2], -1);
        watching.getChildren(node, events);
        clients.make(other, "/node/a", "", CreateMode.PERSISTENT);
        events.next(NodeChildrenChanged, node);
        other.delete(node + "/a", -1);
        // One who watches both is told once of the end.
        watching.exists(node, events);
        watching.getChildren(node, events);
        other.delete(node, -1);
        events.next(NodeDeleted, node);
        events.none(watching);
    }

    @Test
    void persistentWatchesStay() throws Exception {
        Events plain = new Events();
        watching.addWatch(clients.root, plain, AddWatchMode.PERSISTENT);
        watching.addWatch(clients.root, events, AddWatchMode.PERSISTENT_RECURSIVE);
        for (int turn = 0; turn < 2; turn++) {
            String node = clients.make(other, "/node", "", CreateMode.PERSISTENT);
            String child = clients.make(other, "/node/child", "", CreateMode.PERSISTENT);
            other.setData(child, new byte[1], -1);
            other.delete(child, -1);
            other.delete(node, -1);
            events.next(NodeCreated, node);
            events.next(NodeCreated, child);
            events.next(NodeDataChanged, child);
            events.next(NodeDeleted, child);
            events.next(NodeDeleted, node);
            plain.next(NodeChildrenChanged, clients.root);
            plain.next(NodeChildrenChanged, clients.root);
        }
        other.setData(clients.root, new byte[1], -1);
        events.next(NodeDataChanged, clients.root);
        plain.next(NodeDataChanged, clients.root);
        events.none(watching);
        plain.none(watching);
    }

    @Test
    void watchesAreRemoved() throws Exception {
        String node = clients.make(other, "/node", "", CreateMode.PERSISTENT);
        Events children = new Events();
        Events always = new Events();
        watching.getData(node, events, null);
        watching.getChildren(node, children);
        watching.removeWatches(node, events, WatcherType.Data, false);
        events.next(DataWatchRemoved, node);
        watching.removeWatches(node, children, WatcherType.Children, false);
        children.next(ChildWatchRemoved, node);
        watching.addWatch(node, always, AddWatchMode.PERSISTENT);
        watching.removeWatches(node, always, WatcherType.Any, false);
        always.next(PersistentWatchRemoved, node);
        assertThrows(KeeperException.NoWatcherException.class,
            () -> watching.removeWatches(node, events, WatcherType.Any, false));
        watching.exists(node, events);
        Events alone = new Events();
        watching.addWatch(node, alone, AddWatchMode.PERSISTENT);
        watching.removeWatches(node, alone, WatcherType.Persistent, false);
        alone.next(PersistentWatchRemoved, node);
        watching.addWatch(node, alone, AddWatchMode.PERSISTENT_RECURSIVE);
        watching.removeWatches(node, alone, WatcherType.PersistentRecursive, false);
        alone.next(PersistentWatchRemoved, node);
        watching.addWatch(node, always, AddWatchMode.PERSISTENT_RECURSIVE);
        watching.removeAllWatches(node, WatcherType.Any, false);
        events.next(DataWatchRemoved, node);
        always.next(PersistentWatchRemoved, node);
        other.delete(node, -1);
        for (Events none : new Events[] {events, children, always, alone}) {
            none.none(watching);
        }
    }

    @Test
    void manyChangesAreToldInTheirOrder() throws Exception {
        String node = clients.make(other, "/node", "", CreateMode.PERSISTENT);
        watching.addWatch(node, events, AddWatchMode.PERSISTENT_RECURSIVE);
        for (int index = 0; index < 15; index++) {
            ZooKeeper client = clients.at(index % 3);
            clients.make(client, "/node/" + index, "", CreateMode.EPHEMERAL);
            client.close();
            events.next(NodeCreated, node + "/" + index);
            events.next(NodeDeleted, node + "/" + index);
        }
        events.none(watching);
    }
}
