package serve_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// beat writes a heartbeat of a run, as a server whose clock is wrong does.
func (is *station) beat(run string, wrong time.Duration) {
	is.rewrites(run, func(record map[string]any) {
		delete(record, "stoppedAt")
		record["at"] = time.Now().Add(wrong)
	})
}

// The clock of a server is wrong, and a run of it goes on. No server takes it over, whatever the
// heartbeats say. When the server has died another one goes on with the run.
func TestServer_AWrongClockKeepsNoRunAndLosesNone(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, wrong := range map[string]time.Duration{"slow": -30 * time.Minute, "right": 0, "fast": 30 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := outageAt(t, k, 20)
				run, home := is.leaves()
				lives, dies := context.WithCancel(t.Context())
				died := make(chan struct{})
				is.beat(run.ID, wrong)
				go func() {
					defer close(died)
					for lives.Err() == nil {
						select {
						case <-lives.Done():
						case <-time.After(5 * time.Second):
							is.beat(run.ID, wrong)
						}
					}
				}()
				is.serve(serve.Config{Refresh: soonRefreshed, RulesFile: rules(t, slowly)})
				time.Sleep(30 * time.Second) // it has seen two heartbeats
				path := "/topics/orders.dlq/runs/" + run.ID
				for range 30 {
					time.Sleep(10 * time.Second)
					if got := ask[api.Run](is, path); got.Here || got.Silent || is.done.Load() != home {
						t.Fatalf("%d letters were home, now %d, and the run is %+v", home, is.done.Load(), got)
					}
				}
				if code := is.ask(http.MethodPost, path+"/resume", "{}", nil); code != http.StatusConflict {
					t.Errorf("an operator resumes it: %d", code)
				}
				dies()
				<-died
				is.within(2*time.Minute, "the server goes on with the run", func() bool { return ask[api.Run](is, path).Here })
				is.within(time.Hour, "all letters came home", func() bool { return is.done.Load() == 20 })
				if _, all := is.called(); all != 40 {
					t.Errorf("the handler was called %d times for 20 letters", all)
				}
			})
		})
	}
}
