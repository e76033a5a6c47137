// Package clients runs go-redis against a RESP endpoint; see ../endpoint.py for the environment.
package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var protocols = []int{2, 3}

// address is nowhere if only ZooKeeper's protocol is spoken.
func address() string {
	endpoint := os.Getenv("RESP_ENDPOINT")
	if endpoint == "" && os.Getenv("ZOOKEEPER_ENDPOINTS") == "" {
		return "127.0.0.1:6379"
	}
	return endpoint
}

func connect(t *testing.T, address string, protocol int) *redis.Client {
	return connectTo(t, address, protocol, 0)
}

// connectTo connects to the keyspace of a number.
func connectTo(t *testing.T, address string, protocol, database int) *redis.Client {
	t.Helper()
	if address == "" {
		t.Skip("no host speaks RESP")
	}
	client := redis.NewClient(&redis.Options{
		Addr:        address,
		DB:          database,
		Protocol:    protocol,
		ReadTimeout: 30 * time.Second,
	})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return client
}

// each runs the test once for each protocol version.
func each(t *testing.T, test func(t *testing.T, ctx context.Context, client *redis.Client)) {
	for _, protocol := range protocols {
		t.Run(fmt.Sprintf("resp%d", protocol), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			test(t, ctx, connect(t, address(), protocol))
		})
	}
}

func key(t *testing.T, name string) string {
	return fmt.Sprintf("clients:go:%s:%d:%s", t.Name(), time.Now().UnixNano(), name)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestValues(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		name := key(t, "value")
		if err := client.Get(ctx, name).Err(); !errors.Is(err, redis.Nil) {
			t.Fatalf("an absent key gave %v", err)
		}
		must(t, client.Set(ctx, name, "a\x00\r\nb", 0).Err())
		equal(t, client.Get(ctx, name).Val(), "a\x00\r\nb")
		equal(t, client.StrLen(ctx, name).Val(), 5)
		equal(t, client.GetRange(ctx, name, 0, 0).Val(), "a")
		equal(t, client.Type(ctx, name).Val(), "string")
		equal(t, client.TTL(ctx, name).Val(), time.Duration(-1))
		equal(t, client.Exists(ctx, name).Val(), 1)
		equal(t, client.Del(ctx, name).Val(), 1)
		equal(t, client.Exists(ctx, name).Val(), 0)
		equal(t, client.Type(ctx, name).Val(), "none")
	})
}

func TestManyKeys(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		one, two, absent := key(t, "one"), key(t, "two"), key(t, "absent")
		must(t, client.MSet(ctx, one, "1", two, "2").Err())
		values, err := client.MGet(ctx, one, absent, two).Result()
		must(t, err)
		equal(t, fmt.Sprint(values), "[1 <nil> 2]")
		equal(t, client.Unlink(ctx, one, two, absent).Val(), 2)
	})
}

func TestPipeline(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		base := key(t, "pipeline")
		gets := make([]*redis.StringCmd, 500)
		_, err := client.Pipelined(ctx, func(pipeline redis.Pipeliner) error {
			for index := range gets {
				pipeline.Set(ctx, fmt.Sprintf("%s:%d", base, index), index, 0)
				gets[index] = pipeline.Get(ctx, fmt.Sprintf("%s:%d", base, index))
			}
			return nil
		})
		must(t, err)
		for index, get := range gets {
			equal(t, get.Val(), fmt.Sprint(index))
		}
	})
}

func TestScan(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		base := key(t, "scan")
		for index := 0; index < 200; index++ {
			must(t, client.Set(ctx, fmt.Sprintf("%s:%d", base, index), "v", 0).Err())
		}
		found := map[string]bool{}
		keys := client.Scan(ctx, 0, base+":*", 20).Iterator()
		for keys.Next(ctx) {
			found[keys.Val()] = true
		}
		must(t, keys.Err())
		equal(t, len(found), 200)
	})
}

func TestManyGoroutines(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		base := key(t, "goroutine")
		var group sync.WaitGroup
		for number := 0; number < 20; number++ {
			group.Add(1)
			go func(number int) {
				defer group.Done()
				name := fmt.Sprintf("%s:%d", base, number)
				for index := 0; index < 50; index++ {
					err := client.Set(ctx, name, index, 0).Err()
					// A busy disk may keep it waiting for too long; the same may be set again.
					for more := 9; more > 0 && redis.HasErrorPrefix(err, "UNKNOWNOUTCOME"); more-- {
						err = client.Set(ctx, name, index, 0).Err()
					}
					if err != nil {
						t.Errorf("set: %v", err)
					}
					if got := client.Get(ctx, name).Val(); got != fmt.Sprint(index) {
						t.Errorf("goroutine %d read %q after writing %d", number, got, index)
					}
				}
			}(number)
		}
		group.Wait()
	})
}

func TestErrors(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		err := client.Do(ctx, "NONSENSE", "a").Err()
		if err == nil || !strings.HasPrefix(err.Error(), "ERR unknown command 'NONSENSE'") {
			t.Fatalf("an unknown command gave %v", err)
		}
		must(t, client.Ping(ctx).Err())
		must(t, client.Info(ctx).Err())
		must(t, client.ConfigGet(ctx, "save").Err())
	})
}

func TestAWriteIsReadAtAnotherHost(t *testing.T) {
	second := os.Getenv("RESP_ENDPOINT_SECOND")
	if second == "" {
		t.Skip("one host only")
	}
	each(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		other, name := connect(t, second, 3), key(t, "replicated")
		for index := 0; index < 100; index++ {
			must(t, client.Set(ctx, name, index, 0).Err())
			equal(t, other.Get(ctx, name).Val(), fmt.Sprint(index))
		}
	})
}

func TestRefusals(t *testing.T) {
	if os.Getenv("QUORATE") != "1" {
		t.Skip("plain Redis can do these")
	}
	each(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		name := key(t, "refused")
		_, transaction := client.TxPipelined(ctx, func(pipeline redis.Pipeliner) error {
			return pipeline.Set(ctx, name, "x", 0).Err()
		})
		refused := map[string]error{
			"INCR":   client.Incr(ctx, name).Err(),
			"APPEND": client.Append(ctx, name, "x").Err(),
			"SETNX":  client.Do(ctx, "SETNX", name, "x").Err(),
			"GETDEL": client.GetDel(ctx, name).Err(),
			"EXPIRE": client.Expire(ctx, name, time.Minute).Err(),
			"MULTI":  transaction,
		}
		for command, err := range refused {
			if err == nil || !strings.Contains(err.Error(), "this keyspace is linearizable") {
				t.Errorf("%s gave %v, which does not say why it cannot be done", command, err)
			}
		}
		equal(t, client.Exists(ctx, name).Val(), 0)
	})
}
