package integration

import (
	"bytes"
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go/exec"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/retrytopics"
)

// With three retry topics a source has five siblings with as many partitions: six times the
// partitions. docs/operations.md has what that costs a broker, as this test prints it:
//
//	SIDING_PARTITIONS=1000 go test -run SiblingsCost -v .
//
// A partition has one open file and two index files that are mapped into memory. If that grows,
// brokers reach their limits with fewer partitions than the page says.
func TestSiblingsCostABrokerOpenFilesAndMaps(t *testing.T) {
	t.Parallel()
	n, err := strconv.Atoi(os.Getenv("SIDING_PARTITIONS"))
	partitions, measured := int32(n), err == nil
	if !measured {
		partitions = 100
	}
	kafka := StartKafka(t)
	cl, err := kgo.NewClient(append(kafka.Opts(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	must(t, err)
	defer cl.Close()
	adm := kadm.NewClient(cl)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()

	restart := func(when string) {
		if !measured {
			return // it takes seconds, and no promise rests on it
		}
		begun := time.Now()
		kafka.Kill(t, 1)
		kafka.Restart(t, 1)
		t.Logf("killed %s, back after %v", when, time.Since(begun).Round(10*time.Millisecond))
	}
	empty := kafka.usage(t)
	if _, err := adm.CreateTopic(ctx, partitions, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	fill(t, cl, partitions, "orders")
	source := kafka.usage(t)
	restart("with orders only")
	siblings, err := retrytopics.Naming{}.Siblings("orders", "billing", retrytopics.Default...)
	must(t, err)
	begun := time.Now()
	for try := 1; ; try++ { // thousands of partitions may take longer than a call waits
		_, err := retrytopics.Ensure(ctx, adm, retrytopics.Spec{}, siblings)
		if err == nil {
			break
		}
		if try == 5 {
			t.Fatal(err)
		}
	}
	created := time.Since(begun)
	fill(t, cl, partitions, siblings.Topics()...)
	all := kafka.usage(t)

	t.Logf("%-30s %12s %12s %12s", "", "open files", "maps", "resident MiB")
	for _, row := range []struct {
		what string
		usage
	}{{"no topic", empty}, {"orders", source}, {"orders and its siblings", all}} {
		t.Logf("%-30s %12d %12d %12d", row.what, row.files, row.maps, row.resident>>10)
	}
	added := int(partitions) * len(siblings.Topics())
	t.Logf("%d topics with %d partitions were created in %v", len(siblings.Topics()), added, created.Round(10*time.Millisecond))
	if files, maps := all.files-source.files, all.maps-source.maps; max(files-added, added-files) > added/10 || max(maps-2*added, 2*added-maps) > added/10 {
		t.Errorf("%d partitions have %d open files and %d maps, want 1 and 2 each", added, files, maps)
	}
	restart("with the siblings")
}

// fill writes a record to each partition.
func fill(t *testing.T, cl *kgo.Client, partitions int32, topics ...string) {
	t.Helper()
	var records []*kgo.Record
	for _, topic := range topics {
		for p := range partitions {
			records = append(records, &kgo.Record{Topic: topic, Partition: p, Key: []byte("k"), Value: []byte("v")})
		}
	}
	must(t, cl.ProduceSync(t.Context(), records...).FirstErr())
}

// usage is what a broker's process has, memory in KiB.
type usage struct{ files, maps, resident int }

func (k *Kafka) usage(t *testing.T) usage {
	t.Helper()
	const script = `ls /proc/1/fd | wc -l; wc -l < /proc/1/maps; grep VmRSS /proc/1/status | tr -dc 0-9; echo`
	_, out, err := k.brokers[0].container.Exec(t.Context(), []string{"sh", "-c", script}, exec.Multiplexed())
	must(t, err)
	text, err := io.ReadAll(out)
	must(t, err)
	var u usage
	for i, p := range []*int{&u.files, &u.maps, &u.resident} {
		lines := bytes.Split(text, []byte("\n"))
		if *p, err = strconv.Atoi(strings.TrimSpace(string(lines[i]))); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
	}
	return u
}

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
