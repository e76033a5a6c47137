package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// transactional is the number of a keyspace with transactions; plain Redis has one of that number.
const transactional = 2

// eachTransactional runs the test once for each protocol version, on a keyspace with transactions.
func eachTransactional(
	t *testing.T, test func(t *testing.T, ctx context.Context, client *redis.Client),
) {
	for _, protocol := range protocols {
		t.Run(fmt.Sprintf("resp%d", protocol), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			test(t, ctx, connectTo(t, address(), protocol, transactional))
		})
	}
}

func TestCounters(t *testing.T) {
	eachTransactional(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		name, real := key(t, "counter"), key(t, "real")
		equal(t, client.Incr(ctx, name).Val(), 1)
		equal(t, client.IncrBy(ctx, name, 41).Val(), 42)
		equal(t, client.DecrBy(ctx, name, 2).Val(), 40)
		equal(t, client.IncrByFloat(ctx, real, 0.5).Val(), 0.5)
		equal(t, client.Append(ctx, name, "0").Val(), 3)
		equal(t, client.Get(ctx, name).Val(), "400")
		err := client.Incr(ctx, real).Err()
		if err == nil || !strings.Contains(err.Error(), "not an integer or out of range") {
			t.Fatalf("INCR of a real number gave %v", err)
		}
	})
}

func TestConditions(t *testing.T) {
	eachTransactional(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		name, other := key(t, "first"), key(t, "second")
		equal(t, client.SetNX(ctx, name, "1", time.Minute).Val(), true)
		equal(t, client.SetNX(ctx, name, "2", 0).Val(), false)
		equal(t, client.TTL(ctx, name).Val(), time.Minute)
		equal(t, client.SetXX(ctx, other, "3", 0).Val(), false)
		equal(t, client.MSetNX(ctx, name, "5", other, "5").Val(), false)
		equal(t, client.GetSet(ctx, name, "6").Val(), "1")
		equal(t, client.GetDel(ctx, name).Val(), "6")
		equal(t, client.Exists(ctx, name, other).Val(), 0)
	})
}

func TestTransactionPipeline(t *testing.T) {
	eachTransactional(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		name := key(t, "pipeline")
		var counted *redis.IntCmd
		var read *redis.StringCmd
		_, err := client.TxPipelined(ctx, func(pipeline redis.Pipeliner) error {
			pipeline.Set(ctx, name, 1, time.Minute)
			counted, read = pipeline.Incr(ctx, name), pipeline.Get(ctx, name)
			return nil
		})
		must(t, err)
		equal(t, counted.Val(), 2)
		equal(t, read.Val(), "2")
		// As in Redis, what fails leaves the others be.
		told, err := client.TxPipelined(ctx, func(pipeline redis.Pipeliner) error {
			pipeline.Set(ctx, name, "text", 0)
			pipeline.Incr(ctx, name)
			pipeline.Append(ctx, name, "!")
			return nil
		})
		if err == nil || told[1].Err() == nil {
			t.Fatalf("INCR of a text gave %v", err)
		}
		equal(t, client.Get(ctx, name).Val(), "text!")
	})
}

func TestWatch(t *testing.T) {
	eachTransactional(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		name := key(t, "watched")
		must(t, client.Set(ctx, name, 5, 0).Err())
		err := client.Watch(ctx, func(tx *redis.Tx) error {
			must(t, tx.Get(ctx, name).Err())
			must(t, client.Incr(ctx, name).Err())
			_, err := tx.TxPipelined(ctx, func(pipeline redis.Pipeliner) error {
				return pipeline.Set(ctx, name, 50, 0).Err()
			})
			return err
		}, name)
		if !errors.Is(err, redis.TxFailedErr) {
			t.Fatalf("a transaction over a changed key gave %v", err)
		}
		equal(t, client.Get(ctx, name).Val(), "6")
	})
}

// oneMore adds one to a key by WATCH, as often as it takes.
func oneMore(ctx context.Context, client *redis.Client, name string) error {
	for {
		err := client.Watch(ctx, func(tx *redis.Tx) error {
			value, err := tx.Get(ctx, name).Int()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(pipeline redis.Pipeliner) error {
				return pipeline.Set(ctx, name, value+1, 0).Err()
			})
			return err
		}, name)
		if !errors.Is(err, redis.TxFailedErr) {
			return err
		}
	}
}

func TestNothingIsLostOfWhatManyAdd(t *testing.T) {
	eachTransactional(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		const adders, additions, watched = 8, 50, 5
		clients := []*redis.Client{client}
		if second := os.Getenv("RESP_ENDPOINT_SECOND"); second != "" {
			clients = append(clients, connectTo(t, second, 3, transactional))
		}
		name, other := key(t, "adders"), key(t, "watchers")
		var group sync.WaitGroup
		for number := 0; number < adders; number++ {
			group.Add(1)
			go func(client *redis.Client) {
				defer group.Done()
				for index := 0; index < additions; index++ {
					if err := client.Incr(ctx, name).Err(); err != nil {
						t.Errorf("incr: %v", err)
					}
				}
				for index := 0; index < watched; index++ {
					if err := oneMore(ctx, client, other); err != nil {
						t.Errorf("watch: %v", err)
					}
				}
			}(clients[number%len(clients)])
		}
		group.Wait()
		equal(t, client.Get(ctx, name).Val(), strconv.Itoa(adders*additions))
		equal(t, client.Get(ctx, other).Val(), strconv.Itoa(adders*watched))
	})
}

func TestKeysExpire(t *testing.T) {
	eachTransactional(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		name := key(t, "short")
		must(t, client.Set(ctx, name, "x", 100*time.Second).Err())
		equal(t, client.TTL(ctx, name).Val(), 100*time.Second)
		equal(t, client.Persist(ctx, name).Val(), true)
		equal(t, client.TTL(ctx, name).Val(), time.Duration(-1))
		equal(t, client.PExpire(ctx, name, 200*time.Millisecond).Val(), true)
		for !errors.Is(client.Get(ctx, name).Err(), redis.Nil) {
			must(t, ctx.Err())
		}
		equal(t, client.TTL(ctx, name).Val(), time.Duration(-2))
	})
}
