package dlq_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

// Summarize the open letters, discard some, and list the rest.
func ExampleLedger() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders.dlq", "orders.dlq.ledger"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	ctx := context.Background()
	opts := []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...)}
	if err := park(ctx, opts, "orders.SKUError", "net.timeout", "orders.SKUError"); err != nil {
		fmt.Println(err)
		return
	}

	ledger := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", opts...)
	show := func() {
		if err := ledger.Read(ctx, nil, nil); err != nil {
			fmt.Println(err)
			return
		}
		s, err := ledger.Summarize(ctx, dlq.Filter{}, dlq.Cursor{}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d open, %d resolved\n", s.Open, s.Resolved)
		for _, f := range s.Failures {
			fmt.Printf("  %d %s\n", f.Count, f.Class)
		}
	}
	show()
	cursor, err := dlq.Freeze(ctx, "orders.dlq", opts...)
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := ledger.Discard(ctx, dlq.Filter{Classes: []string{"net.timeout"}}, cursor, dlq.DiscardOptions{By: "ada", Why: "the orders were placed again"})
	fmt.Println("discarded", n, err)
	show()
	// Output:
	// 3 open, 0 resolved
	//   2 orders.SKUError
	//   1 net.timeout
	// discarded 1 <nil>
	// 2 open, 1 resolved
	//   2 orders.SKUError
}

// Dead letters are archived before the resolved ones are pruned, and can be imported again.
func ExampleExport() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders.dlq", "orders.dlq.ledger"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	ctx := context.Background()
	opts := []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...)}
	if err := park(ctx, opts, "orders.SKUError", "orders.SKUError", "net.timeout"); err != nil {
		fmt.Println(err)
		return
	}
	ledger := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", opts...)
	discard := dlq.Filter{Classes: []string{"orders.SKUError"}}
	if _, err := ledger.Discard(ctx, discard, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "test orders"}); err != nil {
		fmt.Println(err)
		return
	}
	if err := ledger.Read(ctx, nil, nil); err != nil {
		fmt.Println(err)
		return
	}

	gone, err := ledger.Prunable(ctx, time.Time{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var archive bytes.Buffer
	n, err := dlq.Export(&archive, dlq.Read(ctx, "orders.dlq", dlq.Filter{}, dlq.Cursor{End: gone.Until}, opts...))
	fmt.Println("archived", n, err)
	fmt.Println("pruned", gone.Letters, ledger.Prune(ctx, gone, dlq.PruneOptions{By: "ada"}))
	n, err = dlq.Import(ctx, "orders.dlq", bytes.NewReader(archive.Bytes()), dlq.ImportOptions{}, opts...)
	fmt.Println("imported", n, err)
	// Output:
	// archived 2 <nil>
	// pruned 2 <nil>
	// imported 2 <nil>
}
