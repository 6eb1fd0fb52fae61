package serve_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve/api"
)

// A permission goes in the midst of a run. The run says which one, and the log says it once for a
// reason. When it is back, the run goes on by itself, and each letter comes home once.
func TestServer_ARunSaysWhatKeepsItFromGoingOn(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	columns := serverRights(t)
	all := slices.Concat(columns[:]...)
	for _, right := range all {
		if right.Operation != kmsg.ACLOperationWrite || right.Resource == kmsg.ACLResourceTypeGroup {
			continue
		}
		t.Run(right.Name, func(t *testing.T) {
			t.Parallel()
			guard(t, all, func(is *guarded) { is.pausesWithout(right) })
		})
	}
}

// pausesWithout takes a permission away after the first letter of a run came home, and gives it
// back a while later.
func (is *guarded) pausesWithout(right kfake.ACL) {
	is.t.Helper()
	is.watches()
	var run api.Run
	if code := is.ask(http.MethodPost, "/topics/orders.dlq/runs", `{"pace":{"rampMs":-1,"windowMs":1000,"canary":-1,"rate":0.02,"burst":1}}`, &run); code != http.StatusAccepted {
		is.t.Fatalf("a run: %d, %+v", code, run)
	}
	is.within(10*time.Minute, "one letter came home", func() bool { return is.done.Load() == 1 })
	is.revoke(right)
	is.within(10*time.Minute, "the run says "+named(right), func() bool {
		return strings.Contains(ask[api.Run](is.station, "/topics/orders.dlq/runs/"+run.ID).Waiting, named(right))
	})
	at := is.log.count("could not be resumed")
	time.Sleep(15 * time.Minute)
	if n := is.log.count("could not be resumed"); n > at+3 {
		is.t.Errorf("the log said it %d times in a quarter of an hour", n-at)
	}
	is.grant(right)
	is.within(time.Hour, "all letters came home", func() bool {
		return ask[api.Run](is.station, "/topics/orders.dlq/runs/"+run.ID).Counts.Succeeded == 4
	})
	each, _ := is.called()
	for offset, n := range each {
		if n != 2 { // it failed once
			is.t.Errorf("record %d was handled %d times", offset, n)
		}
	}
	if now := ask[api.Run](is.station, "/topics/orders.dlq/runs/"+run.ID); now.Waiting != "" {
		is.t.Errorf("the run that ended waits: %s", now.Waiting)
	}
}
