package consumertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/redact"
)

var errCurrency = errors.New("unknown currency")

// night returns the export of the dead letters of an incident: records that a handler refused.
func night(t *testing.T, records ...*kgo.Record) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "night.jsonl")
	Virtual(t, func(t *testing.T, k *Kafka) {
		k.CreateTopic("orders", 3)
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{time.Minute}},
			Handler: func(context.Context, *kgo.Record) error { return classify.Terminal(errCurrency) },
		})
		for _, r := range k.Produce(records...) {
			k.DeadLettered(r, headers.ReasonTerminal)
		}
		var text bytes.Buffer
		if _, err := dlq.Export(&text, dlq.Read(t.Context(), "orders.dlq", dlq.Filter{}, dlq.Cursor{}, k.Opts()...)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	return file
}

// seen is what a handler sees of a record.
type seen struct {
	Topic      string
	Partition  int32
	Key, Value string
	Headers    []kgo.RecordHeader
	Timestamp  int64
}

func seenOf(r *kgo.Record) seen {
	return seen{r.Topic, r.Partition, string(r.Key), string(r.Value), r.Headers, r.Timestamp.UnixMilli()}
}

func TestKafka_ImportProducesWhatTheGroupSaw(t *testing.T) {
	t.Parallel()
	mine := []kgo.RecordHeader{{Key: "tenant", Value: []byte("7")}, {Key: "dlq-of-mine", Value: nil}}
	var records []*kgo.Record
	for i := range 9 {
		records = append(records, &kgo.Record{Topic: "orders", Partition: int32(2 - i%3), Key: fmt.Append(nil, i), Value: fmt.Append(nil, "v", i), Headers: mine})
	}
	file := night(t, records...)
	Virtual(t, func(t *testing.T, k *Kafka) {
		letters := k.Import(file)
		var got, want []seen
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Concurrency: 1,
			Handler: func(ctx context.Context, r *kgo.Record) error {
				if d := consumer.DeliveryOf(ctx, r); d.Attempt != 1 {
					t.Errorf("attempt %d", d.Attempt)
				}
				got = append(got, seenOf(r))
				return nil
			},
		})
		k.Fixed(letters)
		k.Conserved()
		for p := range int32(3) {
			for _, r := range records {
				if r.Partition == p {
					want = append(want, seenOf(r))
				}
			}
		}
		byPartition := func(all []seen) (sorted []seen) {
			for p := range int32(3) {
				for _, s := range all {
					if s.Partition == p {
						sorted = append(sorted, s)
					}
				}
			}
			return sorted
		}
		if d := cmp.Diff(want, byPartition(got)); d != "" {
			t.Error(d)
		}
	})
}

func TestKafka_FixedNamesTheFailedByClass(t *testing.T) {
	t.Parallel()
	var records []*kgo.Record
	for i := range 40 {
		records = append(records, &kgo.Record{Topic: "orders", Key: fmt.Append(nil, i), Value: fmt.Append(nil, i%10)})
	}
	file := night(t, records...)
	Virtual(t, func(t *testing.T, k *Kafka) {
		letters := k.Import(file)
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{time.Hour}},
			Handler: func(_ context.Context, r *kgo.Record) error {
				switch string(r.Value) {
				case "1", "2":
					return classify.Terminal(classify.As(errors.New("not yet"), "currency"))
				case "3":
					return classify.Discard(classify.As(errors.New("paid"), "double"))
				case "4":
					return classify.Retryable(classify.As(errors.New("busy"), "busy"))
				}
				return nil
			},
		})
		got := messageOf(k, func() { k.Fixed(letters) })
		for _, want := range []string{"16 of 40 letters are not fixed", "\n8 currency, the first is letter orders.dlq/", ": not yet", "\n4 discarded, class double, the first", "\n4 busy, the first"} {
			if !strings.Contains(got, want) {
				t.Errorf("the message lacks %q:\n%s", want, got)
			}
		}
	})
}

func TestKafka_FixedWaitsForRetries(t *testing.T) {
	t.Parallel()
	file := night(t, &kgo.Record{Topic: "orders", Value: []byte("a")}, &kgo.Record{Topic: "orders", Value: []byte("b")})
	Virtual(t, func(t *testing.T, k *Kafka) {
		letters := k.Import(file)
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{time.Hour}},
			Handler: func(ctx context.Context, r *kgo.Record) error {
				if consumer.DeliveryOf(ctx, r).Attempt == 1 {
					return classify.Retryable(errors.New("busy"))
				}
				return nil
			},
		})
		k.Fixed(letters)
	})
}

func TestKafka_ImportEdits(t *testing.T) {
	t.Parallel()
	file := night(t, &kgo.Record{Topic: "orders", Value: []byte("EURO")})
	Virtual(t, func(t *testing.T, k *Kafka) {
		letters := k.Import(file, func(r *kgo.Record) error {
			r.Value = bytes.ReplaceAll(r.Value, []byte("EURO"), []byte("EUR"))
			return nil
		}, func(r *kgo.Record) error {
			r.Topic = "payments"
			return nil
		})
		if r := letters.Records[0]; r.Topic != "payments" || string(r.Value) != "EUR" {
			t.Errorf("%s on %s", r.Value, r.Topic)
		}
		got := messageOf(k, func() { k.Import(file, func(*kgo.Record) error { return errCurrency }) })
		if want := "edit the record of letter orders.dlq/"; !strings.Contains(got, want) || !strings.Contains(got, errCurrency.Error()) {
			t.Errorf("%q lacks %q", got, want)
		}
	})
}

// saveLetters writes an export of letters.
func saveLetters(t *testing.T, letters ...*dlq.Letter) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "letters.jsonl")
	var text bytes.Buffer
	if _, err := dlq.Export(&text, func(yield func(*dlq.Letter, error) bool) {
		for _, l := range letters {
			if !yield(l, nil) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// letterOf returns a letter of a record that was first read at an offset of orders/1.
func letterOf(offset int64, value []byte, change func(*headers.Meta)) *dlq.Letter {
	m := headers.Meta{Original: headers.Position{Topic: "orders", Partition: 1, Offset: offset}, Group: "billing", Reason: headers.ReasonTerminal, Class: "c", Attempts: 1}
	if change != nil {
		change(&m)
	}
	r := &kgo.Record{Topic: "orders.dlq", Partition: 1, Offset: 100 - offset, Timestamp: time.UnixMilli(1_700_000_000_000), Value: value}
	r.Headers = m.Append(nil)
	return &dlq.Letter{Record: r, Meta: m}
}

func TestKafka_ImportSkipsWhatHasNoValue(t *testing.T) {
	t.Parallel()
	omitted := letterOf(1, nil, func(m *headers.Meta) { m.ValueOmitted = true })
	hidden := letterOf(2, []byte(redact.Mark), nil)
	hidden.Redacted = true
	partly := letterOf(4, []byte(`{"card":"[redacted]"}`), nil)
	partly.Redacted = true
	file := saveLetters(t, omitted, hidden, partly, letterOf(4, []byte("a copy"), nil), letterOf(3, nil, nil), letterOf(5, []byte(redact.Mark), nil))
	k := Start(t)
	l := k.Import(file)
	var got []string
	for _, r := range l.Records {
		got = append(got, fmt.Sprintf("%s/%d %s %t", r.Topic, r.Partition, r.Value, r.Value == nil))
		if len(r.Headers) > 0 {
			t.Errorf("the record has %d headers of siding's", len(r.Headers))
		}
	}
	want := []string{`orders/1  true`, `orders/1 {"card":"[redacted]"} false`, "orders/1 [redacted] false"}
	if d := cmp.Diff(want, got); d != "" || l.Skipped != 2 {
		t.Errorf("skipped %d, %s", l.Skipped, d)
	}
}

// A foreign letter has no place on its source: its own is no other record's. A record that was
// redriven to its source, and failed again, has two letters. One of several may lack the value.
func TestKafka_ImportProducesEachRecordOnce(t *testing.T) {
	t.Parallel()
	foreign := &dlq.Letter{Record: &kgo.Record{Topic: "orders.dlq", Partition: 1, Offset: 7, Timestamp: time.UnixMilli(1_700_000_000_000), Value: []byte("foreign")}}
	again := letterOf(55, []byte("twice"), func(m *headers.Meta) {
		m.Redrive = headers.Redrive{ID: "20260102-150405-0a1b2c", Count: 1, From: headers.Position{Topic: "orders.dlq", Partition: 1, Offset: 95}, Original: headers.Position{Topic: "orders", Partition: 1, Offset: 5}, At: time.UnixMilli(1_700_000_000_000)}
	})
	without := letterOf(9, nil, func(m *headers.Meta) { m.ValueOmitted = true })
	k := Start(t)
	l := k.Import(saveLetters(t, foreign, letterOf(7, []byte("siding's"), nil), letterOf(5, []byte("once"), nil), again, without, letterOf(9, []byte("whole"), nil)))
	var got []string
	for _, r := range l.Records {
		got = append(got, string(r.Value))
	}
	slices.Sort(got)
	if d := cmp.Diff([]string{"foreign", "once", "siding's", "whole"}, got); d != "" || l.Skipped != 0 {
		t.Errorf("skipped %d, %s", l.Skipped, d)
	}
}

// The client of the kit refuses a record of more than a megabyte. Their keys are of other
// partitions.
func TestKafka_ImportProducesLargeRecords(t *testing.T) {
	t.Parallel()
	sizes := []int{1, 3 << 20, 2, 2 << 20, 3}
	var letters []*dlq.Letter
	for i, size := range sizes {
		l := letterOf(int64(i), make([]byte, size), func(m *headers.Meta) { m.Original.Partition = 0 })
		l.Record.Key = fmt.Append(nil, i)
		letters = append(letters, l, letterOf(int64(i), nil, func(m *headers.Meta) { m.Original.Partition = 5 }))
	}
	k := Start(t)
	for i, r := range k.Import(saveLetters(t, letters...)).Records[:len(sizes)] {
		if len(r.Value) != sizes[i] || r.Offset != int64(i) || r.Partition != 0 {
			t.Errorf("record %d has %d bytes at %d/%d", i, len(r.Value), r.Partition, r.Offset)
		}
	}
}

func TestKafka_ImportTakesForeignLetters(t *testing.T) {
	t.Parallel()
	foreign := func(topic string) *dlq.Letter {
		return &dlq.Letter{Record: &kgo.Record{Topic: topic, Partition: 2, Offset: 7, Timestamp: time.UnixMilli(1_700_000_000_000), Value: []byte("x"), Headers: []kgo.RecordHeader{{Key: "kafka_dlt-exception-fqcn"}}}}
	}
	k := Start(t)
	r := k.Import(saveLetters(t, foreign("orders.dlq"))).Records[0]
	if r.Topic != "orders" || r.Partition != 2 || len(r.Headers) != 1 || r.Timestamp.UnixMilli() != 1_700_000_000_000 {
		t.Errorf("%+v", r)
	}
	if got := messageOf(k, func() { k.Import(saveLetters(t, foreign("orders-dlt"))) }); !strings.Contains(got, "letter orders-dlt/2/7: siding did not write it") {
		t.Error(got)
	}
}

func TestKafka_ImportRefusesWhatItCannotProduce(t *testing.T) {
	t.Parallel()
	k := Start(t)
	k.CreateTopic("orders", 1)
	if got := messageOf(k, func() { k.Import(saveLetters(t, letterOf(1, nil, nil))) }); !strings.Contains(got, `topic "orders" has 1 partitions, and a letter is from partition 1`) {
		t.Error(got)
	}
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	whole, err := os.ReadFile(saveLetters(t, letterOf(1, nil, nil), letterOf(2, nil, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, whole[:len(whole)-2], 0o600); err != nil {
		t.Fatal(err)
	}
	if got := messageOf(k, func() { k.Import(broken) }); !strings.Contains(got, "line 2: the file is cut short") {
		t.Error(got)
	}
	if got := messageOf(k, func() { k.Import(broken + ".none") }); !strings.Contains(got, "no such file") {
		t.Error(got)
	}
}

// Ten thousand letters take seconds. -v prints how long, of handled ones and of failing ones.
func TestKafka_TenThousandLettersAreCheap(t *testing.T) { // not parallel: it prints real time
	cases.Skip(t)
	letters := make([]*dlq.Letter, 10_000)
	for i := range letters {
		letters[i] = letterOf(int64(i), fmt.Append(nil, i), func(m *headers.Meta) { m.Original.Partition = int32(i % 6) })
	}
	file := saveLetters(t, letters...)
	for name, err := range map[string]error{"handled": nil, "failing": classify.Terminal(errCurrency)} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			Virtual(t, func(t *testing.T, k *Kafka) {
				virtual := time.Now()
				l := k.Import(file)
				k.Run(consumer.Config{Group: "billing", Topics: []string{"orders"}, Logger: slog.New(slog.DiscardHandler), Handler: func(context.Context, *kgo.Record) error { return err }})
				got := messageOf(k, func() { k.Fixed(l) })
				if failed := strings.Contains(got, "10000 of 10000 letters are not fixed"); failed != (err != nil) {
					t.Error(got)
				}
				t.Logf("%v of virtual time", time.Since(virtual))
				if err != nil {
					t.Log(got)
				}
			})
			t.Logf("%d letters took %v", len(letters), time.Since(began).Round(time.Millisecond))
		})
	}
}
