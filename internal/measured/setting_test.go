package measured

import (
	"context"
	"regexp"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

func TestSetting_AsksTheBrokersForTheirVersion(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	got, err := Setting(t.Context(), cluster.ListenAddrs(), "clients")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^3 broker\(s\) with the API of Kafka .*\d\.\d; clients on \d+ CPUs \(.+\).*, go1\.`).MatchString(got) {
		t.Errorf("got %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := Setting(ctx, cluster.ListenAddrs(), "clients"); err == nil {
		t.Errorf("without an answer it is %q, want an error", got)
	}
}
