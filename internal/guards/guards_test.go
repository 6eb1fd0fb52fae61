package guards_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/internal/guards"
)

func TestRead_SaysWhatIsHeld(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders", "bills"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	adm := kadm.NewClient(cl)
	for p := range int32(3) {
		for range 10 {
			if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Partition: p}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	began := time.Unix(1_800_000_000, 0)
	moved := func(group, topic string, partition int32, from, at int64, g commitmark.Guard) {
		offsets := kadm.Offsets{}
		text := commitmark.Mark + " 1 f=" + strconv.FormatInt(from, 36) + g.Field()
		offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1, Metadata: text})
		if err := adm.CommitAllOffsets(t.Context(), group, offsets); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(group, topic string, partition int32, at int64, g commitmark.Guard) {
		moved(group, topic, partition, at, at, g)
	}
	commit("billing", "orders", 0, 3, commitmark.Guard{State: commitmark.Strained, Since: began.Add(time.Minute), Class: "later"})
	commit("billing", "orders", 1, 4, commitmark.Guard{State: commitmark.Held, Since: began, Class: "billing.down"})
	commit("billing", "orders", 2, 5, commitmark.Guard{})
	commit("billing", "bills", 0, 0, commitmark.Guard{State: commitmark.Strained, Since: began})
	commit("well", "orders", 0, 1, commitmark.Guard{})
	// an operator kept the text
	moved("well", "orders", 1, 4, 2, commitmark.Guard{State: commitmark.Held, Since: began})
	cluster.ControlKey(int16(kmsg.OffsetFetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		for i, g := range req.(*kmsg.OffsetFetchRequest).Groups {
			if g.Group == "secret" {
				resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
				resp.Groups = []kmsg.OffsetFetchResponseGroup{{Group: g.Group, ErrorCode: kerr.GroupAuthorizationFailed.Code}}
				return resp, nil, i == 0
			}
		}
		return nil, nil, false
	})

	got, err := guards.Read(t.Context(), adm, []string{"billing", "well", "absent"}, []string{"orders"})
	if err != nil {
		t.Fatal(err)
	}
	want := guards.Guard{Group: "billing", Topic: "orders", Held: true, Since: began, Class: "billing.down", Partitions: 2, Of: 3, Waiting: 7 + 6}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, err := guards.Read(t.Context(), adm, []string{"billing"}, []string{"bills", "orders"}); err != nil || len(got) != 2 || got[0].Held || !got[1].Held {
		t.Errorf("got %+v, %v", got, err)
	}
	cluster.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		of := kmsg.ListOffsetsResponseTopic{Topic: "orders"}
		for p := range int32(3) {
			of.Partitions = append(of.Partitions, kmsg.ListOffsetsResponseTopicPartition{Partition: p, ErrorCode: []int16{0, kerr.KafkaStorageError.Code, 0}[p], Offset: 10})
		}
		resp.Topics = append(resp.Topics, of)
		return resp, nil, true
	})
	want.Waiting = -1
	if got, err := guards.Read(t.Context(), adm, []string{"billing"}, []string{"orders"}); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("an end is not known: got %+v, %v, want %+v", got, err, want)
	}
	if got, err := guards.Read(t.Context(), adm, []string{"secret"}, []string{"orders"}); len(got) != 0 || err == nil || !strings.Contains(err.Error(), `group "secret"`) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := guards.Read(t.Context(), adm, nil, []string{"orders"}); len(got) != 0 || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}
