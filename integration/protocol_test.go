package integration_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
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

// eachProtocol runs a test under both group protocols at the same time.
func eachProtocol(t *testing.T, test func(t *testing.T, p protocol)) {
	t.Helper()
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}
