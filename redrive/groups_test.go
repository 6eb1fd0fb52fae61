package redrive

import (
	"context"
	"errors"
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
