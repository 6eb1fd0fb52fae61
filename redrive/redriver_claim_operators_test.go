package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

// distant is a connection that delays each request, about as long as a network and a broker do.
type distant struct{ net.Conn }

func (c distant) Write(b []byte) (int, error) {
	time.Sleep(10*time.Millisecond + rand.N(20*time.Millisecond))
	return c.Conn.Write(b)
}

// Each claim waited for 200 ms and initialised the ids again. That fenced the others, which did the
// same. Two operators took half a minute until one had the run, and four took more than a hundred
// seconds.
func TestClaim_OfSixOperatorsOneRunsWithinTenSeconds(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 50, succeeding)
		var inits atomic.Int64
		k.Cluster.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			inits.Add(1)
			return nil, nil, false
		})
		type result struct {
			by  string
			o   redrive.Outcome
			err error
			at  time.Duration
		}
		const operators = 6
		results := make(chan result, operators)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var runs []*redrive.Redriver
		var plans []*redrive.Plan
		for range operators {
			r := redriverOf(t, redrive.Config{Kafka: dialed(t, k.Opts(), func(c net.Conn) net.Conn { return distant{c} })})
			runs, plans = append(runs, r), append(plans, plan(t, r))
		}
		began := time.Now()
		for i, r := range runs {
			go func() {
				o, err := r.Run(ctx, plans[i], redrive.RunOptions{By: fmt.Sprint("operator ", i), Pace: redrive.Pace{Canary: -1, Ramp: -1, Window: time.Minute}})
				results <- result{fmt.Sprint("operator ", i), o, err, time.Since(began)}
			}()
		}
		winner, refused, resolved := "", map[string]string{}, time.Duration(0)
		for range operators {
			switch res := <-results; {
			case res.err == nil && res.o.Counts.Succeeded == 50 && winner == "":
				winner = res.by
			default:
				e, ok := errors.AsType[*redrive.RefusedError](res.err)
				if !ok || e.Reason != redrive.RefusedUnfinished || e.Run == nil {
					t.Errorf("%s ended with %v, and %+v", res.by, res.err, res.o)
					continue
				}
				refused[res.by] = e.Error()
				resolved = max(resolved, res.at)
			}
		}
		t.Logf("resolved after %v, and %d initialised ids", resolved, inits.Load())
		if len(refused) != operators-1 || resolved > 10*time.Second {
			t.Errorf("after %v %d were refused, want 5 within 10s", resolved, len(refused))
		}
		// Each has two ids; the loser reads the ledger before it initialises them again.
		if n := inits.Load(); n > 18 {
			t.Errorf("ids were initialised %d times, want 12 and a few", n)
		}
		for by, why := range refused {
			if !strings.Contains(why, winner+" on ") {
				t.Errorf("%s has the run, and %s gets: %s", winner, by, why)
			}
		}
		time.Sleep(time.Second) // what is on its way arrives
		if n := len(on(t, k, "orders.retry.5s")); n != 50 {
			t.Errorf("%d copies are on the tier, want 50", n)
		}
	})
}

// dialed makes the clients of some options use other connections.
func dialed(t *testing.T, opts []kgo.Opt, conn func(net.Conn) net.Conn) []kgo.Opt {
	t.Helper()
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	dial := cl.OptValue(kgo.Dialer).(func(context.Context, string, string) (net.Conn, error))
	return append(opts, kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
		c, err := dial(ctx, network, host)
		if err != nil {
			return nil, err
		}
		return conn(c), nil
	}))
}
