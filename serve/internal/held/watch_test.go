package held_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/bubble"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/retrytopics"
	"github.com/sidingkafka/siding/serve/internal/held"
)

// Groups hold a topic, among a thousand. A group that may not be seen has no guard, and is no
// problem. A coordinator that fails is a problem, logged once; what was known before counts for a
// minute. What is read again counts at once.
func TestWatch_KnowsWhatIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		cluster, err := bubble.NewCluster(&vn, kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"))
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		opts := append(bubble.Opts(&vn), kgo.SeedBrokers(cluster.ListenAddrs()...))
		cl, err := kgo.NewClient(opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		adm := kadm.NewClient(cl)
		commit := func(group string, g commitmark.Guard) {
			t.Helper()
			at := kadm.Offsets{}
			at.Add(kadm.Offset{Topic: "orders", Partition: 1, LeaderEpoch: -1, Metadata: commitmark.Mark + " 1" + g.Field()})
			if err := adm.CommitAllOffsets(t.Context(), group, at); err != nil {
				t.Fatal(err)
			}
		}
		const groups = 1000
		began := time.Unix(1_800_000_000, 0)
		for i := range groups - 3 {
			commit(fmt.Sprint("well-", i), commitmark.Guard{})
		}
		commit("billing", commitmark.Guard{State: commitmark.Held, Since: began, Class: "\x1b[2Jdown\n"})
		commit("mail", commitmark.Guard{State: commitmark.Strained, Since: began})
		commit("secret", commitmark.Guard{State: commitmark.Held, Since: began})
		var failing atomic.Bool
		var lists, fetches, ends atomic.Int32
		cluster.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			switch r := r.(type) {
			case *kmsg.ListGroupsRequest:
				lists.Add(1)
			case *kmsg.ListOffsetsRequest:
				ends.Add(1)
			case *kmsg.OffsetFetchRequest:
				fetches.Add(1)
				if !failing.Load() {
					break
				}
				resp := r.ResponseKind().(*kmsg.OffsetFetchResponse)
				for _, g := range r.Groups {
					code := kerr.UnknownServerError.Code
					if g.Group == "secret" {
						code = kerr.GroupAuthorizationFailed.Code
					}
					resp.Groups = append(resp.Groups, kmsg.OffsetFetchResponseGroup{Group: g.Group, ErrorCode: code})
				}
				return resp, nil, true
			}
			return nil, nil, false
		})

		var log bytes.Buffer
		w := held.New(func() []string { return []string{"orders", "bills", "orders"} }, retrytopics.Naming{}, slog.New(slog.NewTextHandler(&log, nil)))
		w.Look(t.Context()) // Run does not run
		known := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(t.Context(), known, opts...)
		}()
		synctest.Wait()
		if w.Look(t.Context()); lists.Load() != 1 || fetches.Load() != 1 || ends.Load() != 1 {
			t.Errorf("a look at %d groups took %d lists, %d fetches and %d requests for ends", groups, lists.Load(), fetches.Load(), ends.Load())
		}
		says := func() (all []string) {
			for _, g := range w.Of("orders") {
				all = append(all, fmt.Sprintf("%s %s since %d %q %d/%d %d", g.Group, g.State, g.Since.Unix(), g.Class, g.Partitions, g.Of, *g.Waiting))
			}
			return all
		}
		const billing, mail, secret = `billing held since 1800000000 "\x1b[2Jdown\n" 1/3 0`, `mail strained since 1800000000 "" 1/3 0`, `secret held since 1800000000 "" 1/3 0`
		is := func(when string, problems int, want ...string) {
			t.Helper()
			if got := says(); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
			if _, whole := w.Standstills("orders"); whole != !failing.Load() {
				t.Errorf("%s: the groups are read as a whole: %v", when, whole)
			}
			if n := strings.Count(log.String(), "level=WARN"); n != problems {
				t.Errorf("%s: the log has %s", when, &log)
			}
		}
		is("all is read", 0, billing, secret, mail)
		close(known)
		failing.Store(true)
		time.Sleep(35 * time.Second)
		is("the coordinator fails", 1, billing, secret, mail)
		if !strings.Contains(log.String(), "UNKNOWN_SERVER_ERROR") || !strings.Contains(log.String(), " further=998") {
			t.Errorf("the log has %s", &log)
		}
		time.Sleep(35 * time.Second)
		is("it fails for a minute", 1)
		failing.Store(false)
		time.Sleep(31 * time.Second)
		is("it is well again", 1, billing, secret, mail)
		commit("billing", commitmark.Guard{})
		time.Sleep(31 * time.Second)
		is("a guard is closed", 1, secret, mail)
	})
}
