package dlq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// Code other than consumers can also write input that it cannot process to a dead-letter topic.
func ExampleWriter_Write() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders.dlq"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(cluster.ListenAddrs()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cl.Close()

	letters := dlq.NewWriter(cl, "orders.dlq")
	done := make(chan error, 1)
	letters.Write(context.Background(),
		&kgo.Record{Key: []byte("order-7"), Value: []byte(`{"sku":`)},
		headers.Meta{Reason: headers.ReasonDecode, Class: "decode", FailedAt: time.Now()},
		func(err error) { done <- err })
	fmt.Println("written:", <-done)
	// Output: written: <nil>
}

// A list is read page by page. Letters that come meanwhile do not change it.
func ExampleRead() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders.dlq"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	ctx := context.Background()
	opts := []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...)}
	if err := park(ctx, opts, "orders.SKUError", "net.timeout", "orders.SKUError", "orders.SKUError"); err != nil {
		fmt.Println(err)
		return
	}

	cursor, err := dlq.Freeze(ctx, "orders.dlq", opts...)
	if err != nil {
		fmt.Println(err)
		return
	}
	filter := dlq.Filter{Classes: []string{"orders.SKUError"}}
	for page := 1; page <= 2; page++ {
		n := 0
		for letter, err := range dlq.Read(ctx, "orders.dlq", filter, cursor, opts...) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Printf("page %d: offset %d %s\n", page, letter.Record.Offset, letter.Meta.Class)
			cursor.Advance(letter)
			if n++; n == 2 {
				break
			}
		}
		fmt.Println(cursor)
	}
	// Output:
	// page 1: offset 0 orders.SKUError
	// page 1: offset 2 orders.SKUError
	// v1/orders.dlq/0:3-4
	// page 2: offset 3 orders.SKUError
	// v1/orders.dlq/0:4-4
}

func park(ctx context.Context, opts []kgo.Opt, classes ...string) error {
	cl, err := kgo.NewClient(append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	letters := dlq.NewWriter(cl, "orders.dlq")
	for _, class := range classes {
		done := make(chan error, 1)
		letters.Write(ctx, &kgo.Record{}, headers.Meta{Class: class, Reason: headers.ReasonTerminal}, func(err error) { done <- err })
		if err := <-done; err != nil {
			return err
		}
	}
	return nil
}
