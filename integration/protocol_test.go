package integration_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/suite"
)

// protocol is one of the two group protocols of Kafka.
type protocol struct {
	name string
	// groupType is the broker's name for groups of this protocol.
	groupType string
	opts      []kgo.Opt
}

var protocols = []protocol{
	{"classic", "classic", nil},
	{"kip-848", "consumer", []kgo.Opt{kgo.ServerSideBalancer()}},
}

// eachProtocol runs a test under both group protocols at the same time. A broker that does not know
// the newer one would let the client fall back to the classic one, which is tested already.
func eachProtocol(t *testing.T, test func(t *testing.T, p protocol)) {
	t.Helper()
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if p.groupType == "consumer" && !knowsConsumerGroups(t) {
				t.Skip("the broker has no KIP-848: its feature group.version is off")
			}
			test(t, p)
		})
	}
}

func knowsConsumerGroups(t *testing.T) bool {
	t.Helper()
	for _, f := range versions(t).FinalizedFeatures {
		if f.Name == "group.version" {
			return f.MaxVersionLevel > 0
		}
	}
	return false
}

// commitsByTopicID reports whether a commit can name a topic by its id, and so cannot be taken for
// one on a topic that was recreated.
func commitsByTopicID(t *testing.T) bool {
	t.Helper()
	for _, k := range versions(t).ApiKeys {
		if k.ApiKey == kmsg.OffsetCommit.Int16() {
			return k.MaxVersion >= 10
		}
	}
	return false
}

// versions is what the shared broker knows.
func versions(t *testing.T) *kmsg.ApiVersionsResponse {
	t.Helper()
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "siding", "test"
	resp, err := req.RequestWith(t.Context(), client(t, shared.Kafka(t)))
	must(t, err)
	return resp
}

// ofMembers are the areas of the suite whose promises a group protocol can break.
var ofMembers = []string{"order", "outage", "rebalance", "restart", "sharing", "start", "topology"}

// Siding's promises on real Kafka, the same tests as on the embedded broker. The classic protocol,
// which these have too, runs the areas of members, and the others with SIDING_LONG.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p protocol) {
		areas := suite.Areas()
		if p.groupType == "classic" && !isLong() {
			areas = ofMembers
		}
		suite.Run(t, func(t *testing.T, f func(*testing.T, *consumertest.Kafka)) {
			opts := append(shared.Kafka(t).Opts(), kgo.HeartbeatInterval(500*time.Millisecond))
			f(t, consumertest.On(t, append(opts, p.opts...)...))
		}, areas...)
	})
}
