package capability

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sidingkafka/siding/internal/client"
)

// ask asks an embedded cluster, and returns the findings by feature.
func ask(t *testing.T, redrive bool, opts ...kfake.Opt) (*kfake.Cluster, func() (Cluster, map[string]Finding)) {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(2), kfake.SeedTopics(1, "orders")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	adm, err := client.NewAdmin(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RequestRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(adm.Close)
	return c, func() (Cluster, map[string]Finding) {
		is, found, err := Ask(t.Context(), adm, redrive)
		if err != nil {
			t.Fatal(err)
		}
		by := map[string]Finding{}
		for _, f := range found {
			if (f.State == Works) != (f.Why == "" && f.Do == "") || f.Feature == "" {
				t.Errorf("%+v", f)
			}
			by[f.Feature] = f
		}
		return is, by
	}
}

func TestAsk_AllWorksOnANewCluster(t *testing.T) {
	t.Parallel()
	// The embedded broker reports the settings that it was given.
	marks := kfake.BrokerConfigs(map[string]string{"offset.metadata.max.bytes": "4096"})
	_, find := ask(t, true, marks)
	is, found := find()
	if is.Brokers != 2 || is.ID == "" || is.Version == "" {
		t.Errorf("%+v", is)
	}
	for _, f := range found {
		if f.State != Works {
			t.Errorf("%+v", f)
		}
	}
	_, find = ask(t, false, marks)
	if _, found := find(); found[runs].State != "" || len(found) == 0 {
		t.Errorf("a consumer has no use for %+v", found[runs])
	}
}

// The versions are those of docs/versions.md.
func TestAsk_SaysWhatOldBrokersLack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		brokers *kversion.Versions
		not     map[string]State
	}{
		{kversion.V2_3_0(), map[string]State{
			"a topic that was recreated is recognized": Limited, "an open transaction that holds a partition up is named": Limited,
			"a run looks at the open transactions of a dead process before it ends them": Limited,
			"brokers refuse a commit to a topic that was recreated":                      Limited, "the group protocol KIP-848 (kgo.ServerSideBalancer)": Limited,
			"these brokers were tried with siding": Unknown,
		}},
		{kversion.V0_10_2(), map[string]State{"handlers run, and failures are tried again": Lacking, runs: Lacking, "redrive prune": Lacking, "settings of retry topics are checked": Limited}},
		{kversion.V3_9_0(), map[string]State{"brokers refuse a commit to a topic that was recreated": Limited, "these brokers were tried with siding": Works}},
	} {
		_, find := ask(t, true, kfake.MaxVersions(tt.brokers))
		_, found := find()
		for feature, want := range tt.not {
			if found[feature].State != want {
				t.Errorf("%v: %s: got %+v, want %s", tt.brokers.VersionGuess(), feature, found[feature], want)
			}
		}
	}
}

// All brokers have to know a request: any of them may lead a partition.
func TestAsk_OneBrokerMayLackARequest(t *testing.T) {
	t.Parallel()
	c, find := ask(t, true)
	c.ControlKey(int16(kmsg.ApiVersions), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if c.CurrentNode() != 1 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
		resp.Version = req.GetVersion()
		kversion.Stable().EachMaxKeyVersion(func(key, most int16) {
			if key != int16(kmsg.DeleteRecords) {
				resp.ApiKeys = append(resp.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: key, MaxVersion: most})
			}
		})
		return resp, nil, true
	})
	_, found := find()
	if f := found["redrive prune"]; f.State != Lacking || f.Why != "broker 1 does not know DeleteRecords" || found[runs].State != Works {
		t.Errorf("%+v", f)
	}
}

// A broker that does not answer is no broker that lacks everything.
func TestAsk_ASilentBrokerIsUnknown(t *testing.T) {
	t.Parallel()
	a := answers{versions: []kadm.BrokerApiVersions{{NodeID: 3, Err: kerr.BrokerNotAvailable}}}
	if f := a.find(features[0]); f.State != Unknown || !strings.Contains(f.Why, "broker 3") {
		t.Errorf("%+v", f)
	}
	if f := a.known(nil)[0]; f.State != Unknown || !strings.Contains(f.Why, "broker 3") || f.Do == "" {
		t.Errorf("%+v", f)
	}
}

func TestAsk_MarksBesideAnOffset(t *testing.T) {
	t.Parallel()
	const feature = "records that finished out of order do not run again after a crash"
	for value, want := range map[string]State{"4096": Works, "100000": Works, "100": Limited} {
		_, find := ask(t, false, kfake.BrokerConfigs(map[string]string{"offset.metadata.max.bytes": value}))
		if _, found := find(); found[feature].State != want {
			t.Errorf("%s: %+v, want %s", value, found[feature], want)
		}
	}
	c, find := ask(t, false)
	c.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, r := range req.(*kmsg.DescribeConfigsRequest).Resources {
			resp.Resources = append(resp.Resources, kmsg.DescribeConfigsResponseResource{ErrorCode: kerr.ClusterAuthorizationFailed.Code, ResourceType: r.ResourceType, ResourceName: r.ResourceName})
		}
		return resp, nil, true
	})
	if _, found := find(); found[feature].State != Unknown || !strings.Contains(found[feature].Do, "DESCRIBE_CONFIGS") {
		t.Errorf("%+v", found[feature])
	}
}

func TestAsk_KnowsOtherBrokers(t *testing.T) {
	t.Parallel()
	for name, meta := range map[string]kadm.Metadata{
		"Azure Event Hubs": {Brokers: kadm.BrokerDetails{{NodeID: 0, Host: "team.servicebus.windows.net"}}},
		"Redpanda":         {Cluster: "redpanda.0d7f4b1c"},
	} {
		a := answers{meta: meta}
		found := a.known([]Finding{{Feature: runs, State: Works}})
		if last := found[len(found)-1]; last.State != Unknown || !strings.Contains(last.Why, name) {
			t.Errorf("%s: %+v", name, last)
		}
		if isHubs := name == "Azure Event Hubs"; (found[0].State == Unknown) != isHubs {
			t.Errorf("%s: %+v", name, found[0])
		}
	}
}
