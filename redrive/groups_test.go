package redrive

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// To the classic protocol a KIP-848 group does not exist. So it seemed to have no members while its
// coordinator was away, and the outcomes of its commits were recorded as unknown.
func TestMembers_AreUnknownWithoutACoordinator(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said  error
		opts  []kgo.Opt
		fails bool
	}{
		"no such group":         {},
		"an old broker":         {opts: []kgo.Opt{kgo.MaxVersions(kversion.V3_0_0())}},
		"the protocol is off":   {said: kerr.UnsupportedVersion},
		"its coordinator loads": {said: kerr.CoordinatorLoadInProgress, fails: true},
		"a broker has trouble":  {said: kerr.UnknownServerError, fails: true},
		"it may not be asked":   {said: kerr.GroupAuthorizationFailed, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Close()
			if c.said != nil {
				e, _ := errors.AsType[*kerr.Error](c.said)
				cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ConsumerGroupDescribe}, Err: e, Count: -1})
			}
			adm, err := kadm.NewOptClient(append(c.opts, kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RetryTimeout(100*time.Millisecond))...)
			if err != nil {
				t.Fatal(err)
			}
			defer adm.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if ids, err := members(ctx, adm, "billing"); len(ids) != 0 || (err != nil) != c.fails {
				t.Errorf("it has the members %q, %v; want an error: %v", ids, err, c.fails)
			}
		})
	}
}

// A group's offsets come with the ids of their topics. While the brokers do not say the name of
// one, as just after its creation, a plan was refused: "no retry topic has a committed offset".
func TestFetchOffsets_FailsWhileATopicHasNoName(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders.retry.1s"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	adm, err := kadm.NewOptClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close()
	committed := kadm.Offsets{}
	committed.AddOffset("orders.retry.1s", 2, 7, -1)
	if err := adm.CommitAllOffsets(t.Context(), "billing", committed); err != nil {
		t.Fatal(err)
	}
	var silent atomic.Int32 // so many answers do not say the name
	cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		asked := req.(*kmsg.MetadataRequest)
		if len(asked.Topics) == 0 || asked.Topics[0].Topic != nil || silent.Add(-1) < 0 {
			return nil, nil, false
		}
		resp := asked.ResponseKind().(*kmsg.MetadataResponse)
		topic := kmsg.NewMetadataResponseTopic()
		topic.TopicID, topic.ErrorCode = asked.Topics[0].TopicID, kerr.UnknownTopicID.Code
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	fresh := func() (kadm.OffsetResponses, error) {
		adm, err := kadm.NewOptClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
		if err != nil {
			t.Fatal(err)
		}
		defer adm.Close()
		return fetchOffsets(t.Context(), adm, "billing")
	}
	silent.Store(1000)
	if offsets, err := fresh(); !errors.Is(err, kerr.UnknownTopicID) {
		t.Errorf("while no broker says the name it has the offsets %v, %v", offsets, err)
	}
	silent.Store(1)
	if offsets, err := fresh(); err != nil || offsets["orders.retry.1s"][2].At != 7 {
		t.Errorf("after one answer without the name it has the offsets %v, %v", offsets, err)
	}
}
