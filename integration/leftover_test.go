package integration_test

import (
	bytes "encoding/binary"
	"hash/crc32"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration"
)

// A run's transaction may stay open on a partition although the coordinator has ended it: the
// partition had no leader then, or the batch came late. The next commit of the same producer made
// its records visible.
func TestWhatIsLeftOpenByARunEndsAsItDidElsewhere(t *testing.T) {
	t.Parallel()
	binary(t)
	// A broker that does not ask the coordinator, like all before Kafka 3.6, can be brought into
	// that state by hand.
	asksNobody := integration.WithConfig("transaction.partition.verification.enable", "false")

	t.Run("by hand", func(t *testing.T) {
		t.Parallel()
		// It stays a leader while it gets no CPU.
		s := on(t, ownKafka(t, asksNobody, integration.WithConfig("broker.session.timeout.ms", "60000")))
		topic := topicName(t)
		target, ledger, archive := topic+".retry.1s", topic+".dlq.ledger", topic+".archive"
		s.CreateTopic(topic, 2)
		s.CreateTopic(archive, 1)
		v := s.deploy(topic, topic, time.Second)
		s.incident(topic, "order", 600)
		v.fixed()
		p := s.begin("run", topic+".dlq", "--yes", "--canary", "0", "--ramp", "0", "--window", "1s", "--rate", "200")
		s.await("progress", func() bool { return len(s.returned(target, kgo.ReadCommitted())) > 100 })
		must(t, p.Process.Signal(os.Interrupt))
		p.ends(1)
		// The ledger cannot be read to its end from here on.
		run := s.rows("runs", topic+".dlq")[0].text("run")

		entry := func(letter int64, copyAt headers.Position) *kgo.Record {
			e := dlq.Entry{State: dlq.Redriven, Run: "another", At: time.Now(), Target: copyAt}
			return e.Record(ledger, int32(letter%2), letter)
		}
		stale := func(r *kgo.Record) headers.Position { return s.stale("siding-redrive-"+topic+".dlq-a", r) }
		recorded := stale(&kgo.Record{Topic: target, Partition: 0, Value: []byte("recorded")})
		unrecorded := stale(&kgo.Record{Topic: target, Partition: 1, Value: []byte("unrecorded")})
		seen := s.Produce(&kgo.Record{Topic: archive, Value: []byte("seen")})[0]
		stale(entry(1_000_000, headers.Position{Topic: archive, Offset: seen.Offset}))
		stale(entry(1_000_001, unrecorded))
		// The record after the unrecorded one is another producer's.
		s.Produce(entry(1_000_002, recorded), entry(1_000_003, headers.Position{Topic: target, Partition: 1, Offset: unrecorded.Offset + 1}))

		s.begin("resume", run).ends(0)
		s.onceEach(topic, target, 600)
		visible := map[string]bool{}
		for _, r := range append(s.read(target, kgo.ReadCommitted()), s.read(ledger, kgo.ReadCommitted())...) {
			visible[string(r.Value)], visible[string(r.Key)] = true, true
		}
		for what, want := range map[string]bool{"recorded": true, "unrecorded": false, "1000000": true, "1000001": false, "1000002": true} {
			if visible[what] != want {
				t.Errorf("%s is visible: %v, want %v", what, visible[what], want)
			}
		}
	})

	t.Run("by a broker that was frozen", func(t *testing.T) {
		t.Parallel()
		kafka := ownKafka(t, asksNobody, integration.WithConfig("broker.session.timeout.ms", "4000"), integration.WithConfig("broker.heartbeat.interval.ms", "500"))
		s := on(t, kafka)
		const letters = 3000
		topic, _ := s.repaired(2, letters)
		p := s.begin("run", topic+".dlq", "--yes", "--rate", "500", "--ramp", "0", "--window", "2s")
		for i := range int64(3) {
			s.await("progress", func() bool {
				return s.count(topic+".retry.1s") > (2*i+1)*letters/8
			})
			kafka.Pause(t, 1)
			<-time.After(8 * time.Second) // twice its session
			kafka.Unpause(t, 1)
		}
		p.ends(0)
		s.onceEach(topic, topic+".retry.1s", letters)
	})
}

// stale writes a record into a transaction that the coordinator does not know, as the last producer
// of a transactional id.
func (s *site) stale(id string, r *kgo.Record) headers.Position {
	s.t.Helper()
	described, err := s.admin.DescribeTransactions(s.t.Context(), id)
	if err == nil {
		err = described[id].Err
	}
	must(s.t, err)
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(kmsg.Produce.Int16(), 11) // later ones inform the coordinator
	cl := client(s.t, s, kgo.MaxVersions(versions))
	found, err := s.admin.ListTopics(s.t.Context(), r.Topic)
	must(s.t, err)
	// Up to Kafka 3.9 a producer keeps its epoch from one transaction to the next, and counts on.
	sequence := int32(0)
	producers, err := s.admin.DescribeProducers(s.t.Context(), kadm.TopicsSet{r.Topic: {r.Partition: {}}})
	must(s.t, err)
	if before, ok := producers[r.Topic].Partitions[r.Partition].ActiveProducers[described[id].ProducerID]; ok && before.ProducerEpoch == described[id].ProducerEpoch {
		sequence = before.LastSequence + 1
	}
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis = &id, -1, 5000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = r.Topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = r.Partition, batchOf(r, described[id].ProducerID, described[id].ProducerEpoch, sequence)
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	at := headers.Position{Topic: r.Topic, Partition: r.Partition}
	resp, err := req.RequestWith(s.t.Context(), cl.Broker(int(found[r.Topic].Partitions[r.Partition].Leader)))
	if err == nil {
		answer := resp.Topics[0].Partitions[0]
		at.Offset, err = answer.BaseOffset, kerr.ErrorForCode(answer.ErrorCode)
	}
	if err != nil {
		s.t.Fatalf("leave something open on %s/%d: %v", r.Topic, r.Partition, err)
	}
	return at
}

// batchOf returns a transactional batch of one record.
func batchOf(record *kgo.Record, id int64, epoch int16, sequence int32) []byte {
	r := kmsg.NewRecord()
	r.Key, r.Value = record.Key, record.Value
	n := len(r.AppendTo(nil)) - 1 // without the length itself, which is one byte so far
	r.Length = int32(n)
	b := kmsg.NewRecordBatch()
	b.Magic, b.Attributes, b.NumRecords = 2, 1<<4, 1
	b.FirstTimestamp, b.MaxTimestamp = time.Now().UnixMilli(), time.Now().UnixMilli()
	b.ProducerID, b.ProducerEpoch, b.FirstSequence = id, epoch, sequence
	b.Records = r.AppendTo(nil)
	raw := b.AppendTo(nil)
	const lengthAt, afterLength, crcAt, afterCRC = 8, 12, 17, 21
	bytes.BigEndian.PutUint32(raw[lengthAt:], uint32(len(raw)-afterLength))
	bytes.BigEndian.PutUint32(raw[crcAt:], crc32.Checksum(raw[afterCRC:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}
