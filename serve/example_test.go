package serve_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/client"
)

// A team mounts the server in its own admin service, below /siding. Run ends with the service.
func ExampleServer_Handler() {
	kafka, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "orders.dlq", "orders.dlq.ledger"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer kafka.Close()

	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the pages of the team") })
	admin := httptest.NewServer(mux) // http.Server in production
	defer admin.Close()

	// Without Access it answers requests from this machine only.
	s, err := serve.New(serve.Config{
		Kafka: []kgo.Opt{kgo.SeedBrokers(kafka.ListenAddrs()...)},
		URL:   admin.URL + "/siding", // for links in notifications, and the way back from a sign-in
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	mux.Handle("/siding/", http.StripPrefix("/siding", s.Handler()))

	// signal.NotifyContext in production
	ctx, end := context.WithTimeout(context.Background(), 30*time.Second)
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			fmt.Println(err)
		}
	})
	defer running.Wait()
	defer end()

	cl, err := client.New(admin.URL+"/siding", "", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for { // the server looks for topics first
		topics, err := cl.Topics(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, t := range topics {
			fmt.Printf("%s: %d open letters\n", t.Topic, t.Open)
		}
		if len(topics) > 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	// Output: orders.dlq: 0 open letters
}
