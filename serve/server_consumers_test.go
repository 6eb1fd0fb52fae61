package serve_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// A service that may not write its letters, another one that is gone, and a tool: the API, the
// pages and the metrics say of each what there is to say, and nothing looks quiet. A permission
// that is granted is seen as well.
func TestServer_ShowsConsumers(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := towns(t, k, "orders")
		cl := is.writer()
		is.lettersOf("orders", 2)
		cfg := consumer.Config{
			Topics: []string{"orders"}, Group: "billing", Version: "2.3.1-hunter42", Policy: consumer.Policy{Tiers: []time.Duration{time.Minute}},
			Handler: func(_ context.Context, r *kgo.Record) error { return classify.Terminal(errors.New("no such SKU")) },
		}
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: -1, Err: kerr.TopicAuthorizationFailed})
		k.Run(cfg)
		at := kadm.Offsets{}
		at.Add(kadm.Offset{Topic: "orders", LeaderEpoch: -1, Metadata: commitmark.Mark})
		foreign := kadm.Offsets{}
		foreign.Add(kadm.Offset{Topic: "orders", LeaderEpoch: -1, Metadata: "console"})
		for group, of := range map[string]kadm.Offsets{"gone": at, "tool": foreign} {
			if err := kadm.NewClient(cl).CommitAllOffsets(t.Context(), group, of); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		k.Produce(&kgo.Record{Topic: "orders"}, &kgo.Record{Topic: "orders"})
		time.Sleep(10 * time.Second)
		is.serve(serve.Config{Redact: serve.Redact{Patterns: []string{"hunter[0-9]+"}}})
		time.Sleep(31 * time.Second)

		all := ask[api.Consumers](is, "/topics/orders.dlq/consumers")
		if all.Source != "orders" || all.Known == nil || all.Hidden != 0 || len(all.Groups) != 3 {
			t.Fatalf("got %+v", all)
		}
		of := map[string]api.Consumer{}
		for _, g := range all.Groups {
			of[g.Group] = g
		}
		g := of["billing"]
		if g.State != "denied" || !g.Bad || !g.Siding || len(g.Members) != 1 || g.GroupState != "Stable" || *g.Partitions != 1 || g.Assigned != 1 || *g.Lag != 2 || *g.Parked != 0 || g.NextDue != nil ||
			len(g.Releases) != 1 || g.Releases[0] != "2.3.1-[redacted]" || g.Members[0].Releases[0] != "2.3.1-[redacted]" || g.Members[0].Host == "" || len(g.Members[0].Partitions) != 1 || len(g.Tiers) != 1 {
			t.Errorf("the group is %+v", g)
		}
		if tr := g.Troubles; len(tr) != 1 || tr[0].Kind != "blocked" || tr[0].Since == nil || tr[0].Since.Sub(began).Abs() > 15*time.Second || *tr[0].Lag != 2 || g.Text != "partition 0: "+tr[0].Text {
			t.Errorf("its troubles are %+v", tr)
		}
		if g := of["gone"]; g.State != "no members" || !g.Bad || len(g.Members) != 0 || *g.Lag != 2 || g.Text != "no members" {
			t.Errorf("the group that is gone is %+v", g)
		}
		if g := of["tool"]; g.State != "no members" || g.Bad || g.Siding || *g.Lag != 2 {
			t.Errorf("the tool's group is %+v", g)
		}
		if topic := ask[api.Topic](is, "/topics/orders.dlq"); len(topic.Stalled) != 2 || topic.Stalled[0].Group != "billing" || topic.Stalled[0].State != "denied" || topic.Stalled[1].State != "no members" || len(topic.Guards) != 0 {
			t.Errorf("the topic has %+v", topic.Stalled)
		}
		const lacks = "partition 0: blocked: it lacks the permission to write to a topic"
		words(t, is.Server, "/", "billing: "+lacks+", 2 records behind", "gone: no members, 2 records behind", "consumers of 1 topic do not run, or not all")
		words(t, is.Server, "/topics/orders.dlq", "Consumers of orders", "Letters may be missing here", lacks, "no members", "2.3.1-[redacted]", "1 member, 1 of 1 partitions")
		for _, path := range []string{"/", "/topics/orders.dlq"} {
			if _, page := visit(t, is.Server, httptest.NewRequest(http.MethodGet, path, nil)); strings.Contains(page, "quiet for") || strings.Contains(page, "none growing") || strings.Contains(page, "hunter") {
				t.Errorf("%s: %s", path, page)
			}
		}
		const ofBilling = `{messaging_consumer_group_name="billing",messaging_destination_name="orders.dlq"`
		page := get(t, is.Server, "/metrics")
		for _, want := range []string{
			`siding_group_members` + ofBilling + `} 1`, `siding_group_lag` + ofBilling + `} 2`, `siding_group_parked` + ofBilling + `} 0`,
			`siding_group_partitions` + ofBilling + `,siding_partition_state="blocked"} 1`, `siding_group_partitions` + ofBilling + `,siding_partition_state="held"} 0`,
			`siding_group_members{messaging_consumer_group_name="gone",messaging_destination_name="orders.dlq"} 0`,
		} {
			if !strings.Contains(page, want+"\n") {
				t.Errorf("/metrics lacks %s: %s", want, page)
			}
		}
		if strings.Contains(page, `"tool"`) {
			t.Error("/metrics has the tool's group")
		}

		fault.Remove()
		time.Sleep(time.Minute)
		for _, g := range ask[api.Consumers](is, "/topics/orders.dlq/consumers").Groups {
			if g.Group == "billing" && (g.State != "runs" || g.Bad || *g.Lag != 0 || g.Text != "") {
				t.Errorf("with the permission, the group is %+v", g)
			}
		}
	})
}
