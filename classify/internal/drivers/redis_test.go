package drivers_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// answers is a Redis that does not know HELLO, and gives the same answer to all other commands, or
// none if the answer is empty.
func answers(answer string, asked chan<- struct{}) func(net.Conn) {
	return func(c net.Conn) {
		for in := bufio.NewReader(c); ; {
			line, err := in.ReadString('\n') // *n, then n times $length and the argument
			if err != nil {
				return
			}
			n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
			var args []string
			for range n {
				_, _ = in.ReadString('\n')
				arg, _ := in.ReadString('\n')
				args = append(args, strings.ToLower(strings.TrimSpace(arg)))
			}
			switch {
			case n > 0 && (args[0] == "hello" || args[0] == "client"):
				_, _ = fmt.Fprint(c, "-ERR unknown command\r\n")
				continue
			case asked != nil:
				asked <- struct{}{}
			}
			if answer == "" {
				_, _ = io.Copy(io.Discard, c)
				return
			}
			_, _ = fmt.Fprintf(c, "%s\r\n", answer)
		}
	}
}

func client(t *testing.T, address string, change func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: address, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, Protocol: 2}
	if change != nil {
		change(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRedis_OutagesAreRetried(t *testing.T) {
	t.Parallel()
	get := func(c *redis.Client) error { return c.Get(t.Context(), "k").Err() }
	for _, answer := range []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.", "CLUSTERDOWN The cluster is down",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "TRYAGAIN Multiple keys request during rehashing of slot",
		"NOREPLICAS Not enough good replicas to write.", "BUSY Redis is busy running a script.", "OOM command not allowed when used memory > 'maxmemory'.",
	} {
		word, _, _ := strings.Cut(answer, " ")
		means(t, answer, get(client(t, listen(t, answers("-"+answer, nil)), nil)), "redis."+word, "retry")
	}
	means(t, "clients", get(client(t, listen(t, answers("-ERR max number of clients reached", nil)), nil)), "redis.MAXCLIENTS", "retry")
	means(t, "a wrong command", get(client(t, listen(t, answers("-WRONGTYPE Operation against a key holding the wrong kind of value", nil)), nil)), "proto.RedisError", "unknown")
	means(t, "no such key", get(client(t, listen(t, answers("$-1", nil)), nil)), "proto.RedisError", "unknown")

	means(t, "no listener", get(client(t, closedPort(t), nil)), "net.refused", "retry")
	means(t, "the server hangs up", get(client(t, listen(t, hangUp), nil)), "net.eof", "retry")
	means(t, "the server is silent", get(client(t, listen(t, answers("", nil)), func(o *redis.Options) { o.ReadTimeout = 20 * time.Millisecond })), "net.timeout", "retry")
}

func TestRedis_APoolThatIsUsedUpIsAnOutage(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	c := client(t, listen(t, answers("", asked)), func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 20*time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.Get(ctx, "k") // takes the only connection
	<-asked
	means(t, "the pool is used up", c.Get(t.Context(), "k").Err(), "redis.pool", "retry")
	means(t, "the pool is exhausted", redis.ErrPoolExhausted, "redis.pool", "retry")
}
