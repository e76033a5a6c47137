// The client for ZooKeeper's protocol, on every host of the cluster.
package clients

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

const patience = 20 * time.Second

var open = zk.WorldACL(zk.PermAll)

type quiet struct{}

func (quiet) Printf(string, ...interface{}) {}

// hosts skips the test if there is nobody to ask.
func hosts(t *testing.T) []string {
	t.Helper()
	endpoints := os.Getenv("ZOOKEEPER_ENDPOINTS")
	if endpoints == "" {
		t.Skip("no host speaks ZooKeeper's protocol")
	}
	return strings.Split(endpoints, ",")
}

// join connects to the host of a number.
func join(t *testing.T, number int) *zk.Conn {
	t.Helper()
	all := hosts(t)
	address := all[number%len(all)]
	client, events, err := zk.Connect([]string{address}, 10*time.Second, zk.WithLogger(quiet{}))
	must(t, err)
	t.Cleanup(client.Close)
	deadline := time.After(patience)
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return client
			}
		case <-deadline:
			t.Fatalf("no session at %s", address)
		}
	}
}

// pair connects to two hosts, and makes a node to work below.
func pair(t *testing.T) (*zk.Conn, *zk.Conn, string) {
	t.Helper()
	one, other := join(t, 0), join(t, 1)
	root, err := one.Create(fmt.Sprintf("/clients-go-%d-", time.Now().UnixNano()), nil, 2, open)
	must(t, err)
	return one, other, root
}

func fails(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("got the error %v, want %v", got, want)
	}
}

func told(t *testing.T, events <-chan zk.Event, kind zk.EventType, path string) {
	t.Helper()
	select {
	case event := <-events:
		must(t, event.Err)
		equal(t, fmt.Sprint(event.Type, event.Path), fmt.Sprint(kind, path))
	case <-time.After(patience):
		t.Fatalf("nothing was told of %s", path)
	}
}

func TestKindsOfNodes(t *testing.T) {
	one, other, root := pair(t)
	path, err := one.Create(root+"/plain", []byte("x"), zk.FlagPersistent, open)
	must(t, err)
	equal(t, path, root+"/plain")
	data, stat, err := other.Get(path)
	must(t, err)
	equal(t, string(data), "x")
	equal(t, stat.Version, 0)
	_, err = other.Create(path, nil, zk.FlagPersistent, open)
	fails(t, err, zk.ErrNodeExists)

	path, err = one.Create(root+"/ephemeral", nil, zk.FlagEphemeral, open)
	must(t, err)
	_, stat, err = other.Exists(path)
	must(t, err)
	equal(t, stat.EphemeralOwner, one.SessionID())
	_, err = other.Create(path+"/child", nil, zk.FlagPersistent, open)
	fails(t, err, zk.ErrNoChildrenForEphemerals)

	for number, client := range []*zk.Conn{one, other} {
		flags := []int32{zk.FlagSequence, zk.FlagEphemeralSequential}[number]
		path, err = client.Create(root+"/s-", nil, flags, open)
		must(t, err)
		equal(t, path, fmt.Sprintf("%s/s-%010d", root, number+2))
	}
	path, err = one.CreateProtectedEphemeralSequential(root+"/p-", nil, open)
	must(t, err)
	found, _, err := other.Exists(path)
	must(t, err)
	equal(t, found, true)

	path, err = one.CreateContainer(root+"/container", nil, zk.FlagContainer, open)
	must(t, err)
	gone(t, other, path, func() {
		_, err := other.Create(path+"/child", nil, zk.FlagPersistent, open)
		must(t, err)
		must(t, other.Delete(path+"/child", -1))
	})
	path, err = one.CreateTTL(root+"/timed", nil, zk.FlagTTL, open, 500*time.Millisecond)
	must(t, err)
	gone(t, other, path, func() {})
}

// gone waits until a node is, after something was done.
func gone(t *testing.T, client *zk.Conn, path string, do func()) {
	t.Helper()
	found, _, events, err := client.ExistsW(path)
	must(t, err)
	equal(t, found, true)
	do()
	told(t, events, zk.EventNodeDeleted, path)
}

func TestNodesAreSetAndRemoved(t *testing.T) {
	one, other, root := pair(t)
	path, err := one.Create(root+"/node", []byte("first"), zk.FlagPersistent, open)
	must(t, err)
	stat, err := other.Set(path, []byte("second"), 0)
	must(t, err)
	equal(t, stat.Version, 1)
	_, err = one.Set(path, []byte("third"), 0)
	fails(t, err, zk.ErrBadVersion)
	data, _, err := one.Get(path)
	must(t, err)
	equal(t, string(data), "second")
	for _, name := range []string{"b", "a"} {
		_, err = one.Create(path+"/"+name, nil, zk.FlagPersistent, open)
		must(t, err)
	}
	children, stat, err := other.Children(path)
	must(t, err)
	sort.Strings(children)
	equal(t, fmt.Sprint(children), "[a b]")
	equal(t, stat.NumChildren, 2)
	fails(t, other.Delete(path, -1), zk.ErrNotEmpty)
	must(t, other.Delete(path+"/a", 0))
	must(t, one.Delete(path+"/b", -1))
	must(t, one.Delete(path, 1))
	_, err = other.Sync(path)
	must(t, err)
	_, _, err = other.Get(path)
	fails(t, err, zk.ErrNoNode)
}

func TestWatches(t *testing.T) {
	one, other, root := pair(t)
	path := root + "/node"
	found, _, made, err := one.ExistsW(path)
	must(t, err)
	equal(t, found, false)
	_, err = other.Create(path, nil, zk.FlagPersistent, open)
	must(t, err)
	told(t, made, zk.EventNodeCreated, path)
	_, _, set, err := one.GetW(path)
	must(t, err)
	_, _, below, err := one.ChildrenW(path)
	must(t, err)
	_, err = other.Set(path, []byte("x"), -1)
	must(t, err)
	told(t, set, zk.EventNodeDataChanged, path)
	_, err = other.Create(path+"/child", nil, zk.FlagPersistent, open)
	must(t, err)
	told(t, below, zk.EventNodeChildrenChanged, path)
	gone(t, one, path+"/child", func() { must(t, other.Delete(path+"/child", -1)) })
}

func TestSeveralTogether(t *testing.T) {
	one, other, root := pair(t)
	path := root + "/node"
	results, err := one.Multi(
		&zk.CreateRequest{Path: path, Data: []byte("1"), Acl: open},
		&zk.SetDataRequest{Path: path, Data: []byte("2"), Version: 0},
		&zk.CheckVersionRequest{Path: path, Version: 1},
		&zk.CreateRequest{Path: path + "/gone", Acl: open, Flags: zk.FlagEphemeral},
		&zk.DeleteRequest{Path: path + "/gone", Version: -1},
	)
	must(t, err)
	equal(t, len(results), 5)
	equal(t, results[0].String, path)
	equal(t, results[1].Stat.Version, 1)
	results, err = other.Multi(
		&zk.SetDataRequest{Path: path, Data: []byte("3"), Version: -1},
		&zk.DeleteRequest{Path: path + "/absent", Version: -1},
		&zk.DeleteRequest{Path: path, Version: -1},
	)
	fails(t, err, zk.ErrNoNode)
	equal(t, len(results), 3)
	fails(t, results[1].Error, zk.ErrNoNode)
	data, _, err := other.Get(path)
	must(t, err)
	equal(t, string(data), "2")
}

func TestWhoMayDoWhat(t *testing.T) {
	one, other, root := pair(t)
	must(t, one.AddAuth("digest", []byte("ann:secret")))
	path, err := one.Create(root+"/node", nil, 0, zk.DigestACL(zk.PermAll, "ann", "secret"))
	must(t, err)
	_, _, err = other.Get(path)
	fails(t, err, zk.ErrNoAuth)
	acl, stat, err := one.GetACL(path)
	must(t, err)
	equal(t, acl[0].Scheme, "digest")
	readable := append(acl, zk.WorldACL(zk.PermRead)...)
	stat, err = one.SetACL(path, readable, stat.Aversion)
	must(t, err)
	equal(t, stat.Aversion, 1)
	_, _, err = other.Get(path)
	must(t, err)
	_, err = other.Set(path, nil, -1)
	fails(t, err, zk.ErrNoAuth)
	must(t, other.AddAuth("digest", []byte("ann:secret")))
	_, err = other.Set(path, nil, -1)
	must(t, err)
}

func TestLock(t *testing.T) {
	one, other, root := pair(t)
	var inside, most int32
	var group sync.WaitGroup
	for number := 0; number < 6; number++ {
		lock := zk.NewLock([]*zk.Conn{one, other}[number%2], root+"/lock", open)
		group.Add(1)
		go func() {
			defer group.Done()
			for turn := 0; turn < 5; turn++ {
				if err := lock.Lock(); err != nil {
					t.Errorf("lock: %v", err)
					return
				}
				if now := atomic.AddInt32(&inside, 1); now > 1 {
					atomic.StoreInt32(&most, now)
				}
				atomic.AddInt32(&inside, -1)
				if err := lock.Unlock(); err != nil {
					t.Errorf("unlock: %v", err)
				}
			}
		}()
	}
	group.Wait()
	equal(t, most, 0)
	lock := zk.NewLock(one, root+"/lock", open)
	must(t, lock.Lock())
	fails(t, lock.Lock(), zk.ErrDeadlock)
	must(t, lock.Unlock())
	fails(t, lock.Unlock(), zk.ErrNotLocked)
}

func TestTheNodesOfASessionGoWithIt(t *testing.T) {
	_, other, root := pair(t)
	leaving := join(t, 2)
	path, err := leaving.Create(root+"/node", nil, zk.FlagEphemeral, open)
	must(t, err)
	gone(t, other, path, leaving.Close)
}

func TestFourLetterWords(t *testing.T) {
	all := hosts(t)
	if os.Getenv("QUORATE") != "1" {
		t.Skip("this client cannot read what ZooKeeper 3.9 says of itself")
	}
	for number, ok := range zk.FLWRuok(all, patience) {
		if !ok {
			t.Errorf("%s is not well", all[number])
		}
	}
	// Whoever has a session is among the clients of a host.
	one := join(t, 0)
	_, _, err := one.Exists("/")
	must(t, err)
	told, ok := zk.FLWCons(all, patience)
	isThere := false
	for _, host := range told {
		must(t, host.Error)
		for _, client := range host.Clients {
			isThere = isThere || client.SessionID == one.SessionID()
		}
	}
	if !ok || !isThere {
		t.Errorf("nobody has the session %x: %+v", one.SessionID(), told)
	}
	// What a host says of itself is up to a second old.
	until := time.Now().Add(patience)
	for modes := ""; modes != "follower follower leader"; modes = modesOf(t, all) {
		if time.Now().After(until) {
			t.Fatalf("the hosts say that they are: %s", modes)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// modesOf says which hosts lead, in the order of these words.
func modesOf(t *testing.T, all []string) string {
	t.Helper()
	var modes []string
	stats, _ := zk.FLWSrvr(all, patience)
	for _, stat := range stats {
		must(t, stat.Error)
		modes = append(modes, stat.Mode.String())
		if stat.NodeCount < 4 || !strings.HasPrefix(stat.Version, "3.9.") {
			t.Errorf("%s says of itself %+v", stat.Server, stat)
		}
	}
	sort.Strings(modes)
	return strings.Join(modes, " ")
}
