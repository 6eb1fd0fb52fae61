package dlq_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// A cursor as text fits into a URL or a flag, so that another process can read the next page.
func ExampleParseCursor() {
	cursor, err := dlq.ParseCursor("v1/orders.dlq/0:17-42,1:3-3")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cursor.Topic, cursor.At[0], cursor.End[0], cursor.Done())
	cursor.Advance(&dlq.Letter{Record: &kgo.Record{Topic: "orders.dlq", Partition: 0, Offset: 41}})
	fmt.Println(cursor, cursor.Done())
	_, err = dlq.ParseCursor("v1/orders.dlq/0:many")
	fmt.Println(err != nil)
	// Output:
	// orders.dlq 17 42 false
	// v1/orders.dlq/0:42-42,1:3-3 true
	// true
}

// The letters of a list are fixed when it begins.
func ExampleFreeze() {
	opts, stop := broker()
	defer stop()
	ctx := context.Background()
	if err := park(ctx, opts, "net.timeout", "net.timeout"); err != nil {
		fmt.Println(err)
		return
	}
	cursor, err := dlq.Freeze(ctx, "orders.dlq", opts...)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := park(ctx, opts, "net.timeout"); err != nil {
		fmt.Println(err)
		return
	}
	n := 0
	for _, err := range dlq.Read(ctx, "orders.dlq", dlq.Filter{}, cursor, opts...) {
		if err != nil {
			fmt.Println(err)
			return
		}
		n++
	}
	fmt.Println(cursor, n, "letters")
	// Output: v1/orders.dlq/0:0-2 2 letters
}

// A letter has to match all fields that are set. Match is for other conditions.
func ExampleFilter_Selects() {
	filter := dlq.Filter{
		Reasons: []headers.Reason{headers.ReasonExhausted, headers.ReasonExpired},
		Since:   time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), // the deployment that broke it
		Match:   func(l *dlq.Letter) bool { return strings.HasPrefix(string(l.Record.Key), "customer-") },
	}
	letter := &dlq.Letter{
		Record: &kgo.Record{Key: []byte("customer-1")},
		Meta:   headers.Meta{Reason: headers.ReasonExhausted, FailedAt: time.Date(2026, 11, 20, 8, 5, 0, 0, time.UTC)},
	}
	fmt.Println(filter.Selects(letter))
	letter.Meta.Reason = headers.ReasonDecode
	fmt.Println(filter.Selects(letter))
	// Output:
	// true
	// false
}

// broker starts a broker in this process, with a dead-letter topic of one partition.
func broker() (opts []kgo.Opt, stop func()) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders.dlq"))
	if err != nil {
		panic(err)
	}
	return []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...)}, cluster.Close
}
