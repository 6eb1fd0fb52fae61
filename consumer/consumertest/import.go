package consumertest

// Dead letters of an export as records of a test.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/retrytopics"
)

// Letters are the dead letters that Import took from a file.
type Letters struct {
	// Records are the records that were produced, in the order that they had on their sources.
	Records []*kgo.Record
	// Skipped counts the letters that were not produced because the file lacks their value: it did
	// not fit into the letter, or all of it was redacted.
	Skipped int

	letters []position // of each record, where its letter was
}

// Import produces the records of dead letters as their group first saw them: each on its source and
// partition, in the order there, with key, value, the user's headers and the timestamp. file is an
// output of redrive export, also with --redact. Of several letters of one record the first counts
// that has its value.
//
// Each edit changes each record before it is produced, and may name another topic. The source of a
// letter that siding did not write is the one that the name of its topic says.
//
// Import creates topics that do not exist, with as many partitions as the letters need. A broken
// line or an edit's error fails the test, and then nothing is produced.
func (k *Kafka) Import(file string, edits ...func(*kgo.Record) error) *Letters {
	k.tb.Helper()
	all, skipped, err := readLetters(file, edits)
	if err != nil {
		k.tb.Fatalf("consumertest: import %s: %v", file, err)
	}
	l := &Letters{Skipped: skipped}
	partitions := map[string]int32{}
	for _, i := range all {
		l.Records, l.letters = append(l.Records, i.record), append(l.letters, i.letter)
		partitions[i.record.Topic] = max(partitions[i.record.Topic], i.record.Partition+1)
	}
	for _, topic := range slices.Sorted(maps.Keys(partitions)) {
		createMissing(k, topic, partitions[topic])
	}
	produceInPlace(k, l.Records)
	return l
}

// importable is a record to produce, where it was first read, and where its letter was.
type importable struct {
	record         *kgo.Record
	origin, letter position
}

// readLetters reads the records of a file, in the order of their origins.
func readLetters(file string, edits []func(*kgo.Record) error) (all []importable, skipped int, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // it was only read
	records := map[position]bool{}   // whether it has its value
	for l, err := range dlq.ReadExport(f) {
		if err != nil {
			return nil, 0, err
		}
		i := firstSeen(l)
		if records[i.origin] {
			continue
		}
		records[i.origin] = !l.Meta.ValueOmitted && !(l.Redacted && string(l.Record.Value) == redact.Mark)
		if !records[i.origin] {
			continue
		}
		for _, edit := range edits {
			if err := edit(i.record); err != nil {
				return nil, 0, fmt.Errorf("edit the record of letter %v: %w", i.letter, err)
			}
		}
		if i.record.Topic == "" {
			return nil, 0, fmt.Errorf("letter %v: siding did not write it, and the name of its topic says no source: an edit has to set Record.Topic", i.letter)
		}
		all = append(all, i)
	}
	skipped = len(records) - len(all)
	slices.SortStableFunc(all, func(a, b importable) int { return a.origin.compare(b.origin) })
	return all, skipped, nil
}

// firstSeen returns the record of a letter as the group first saw it.
func firstSeen(l *dlq.Letter) importable {
	l = l.Own() // of another program's letter only the bytes are taken
	was := l.Record
	i := importable{letter: positionOf(was), origin: originalOf(l.Meta.Original)}
	topic, at := i.origin.topic, l.Meta.Original.Timestamp
	switch {
	case topic == "":
		i.origin = i.letter
		topic, _ = retrytopics.Naming{}.SourceOf(was.Topic)
	case l.Meta.Redrive.Original.Topic != "": // the record was redriven to its source
		i.origin = originalOf(l.Meta.Redrive.Original)
	}
	if at.IsZero() {
		at = was.Timestamp
	}
	i.record = &kgo.Record{Topic: topic, Partition: i.origin.partition, Key: was.Key, Value: was.Value, Timestamp: at}
	i.record.Headers = headers.Strip(was.Headers)
	return i
}

// createMissing creates a topic unless it exists. It keeps records of any age and size.
func createMissing(k *Kafka, topic string, partitions int32) {
	k.tb.Helper()
	ctx, cancel := k.within()
	defer cancel()
	there, err := k.admin.ListTopics(ctx, topic)
	if err == nil && !errors.Is(there[topic].Err, kerr.UnknownTopicOrPartition) {
		err = there[topic].Err
	}
	switch {
	case err != nil:
		k.tb.Fatalf("consumertest: import: look for topic %q: %v", topic, err)
	case there[topic].Err != nil:
		k.CreateTopic(topic, partitions)
		if _, err := k.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{
			{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("-1")}, {Op: kadm.SetConfig, Name: "max.message.bytes", Value: kadm.StringPtr(strconv.Itoa(1 << 30))},
		}, topic); err != nil {
			k.tb.Fatalf("consumertest: import: configure topic %q: %v", topic, err)
		}
	case len(there[topic].Partitions) < int(partitions):
		k.tb.Fatalf("consumertest: import: topic %q has %d partitions, and a letter is from partition %d: create it with %d partitions, or leave its creation to Import",
			topic, len(there[topic].Partitions), partitions-1, partitions)
	}
}

// produceInPlace produces records to their own partitions, in their order.
func produceInPlace(k *Kafka, records []*kgo.Record) {
	k.tb.Helper()
	var together []*kgo.Record
	for _, r := range records {
		r.Context = inPlace{context.Background()}
		if client.Size(r) < client.MostBytes(k.client, r.Topic) {
			together = append(together, r)
			continue
		}
		k.Produce(together...)
		together = nil
		produceLarge(k, r)
	}
	k.Produce(together...)
}

// produceLarge produces a record that the client of the kit refuses for its size.
func produceLarge(k *Kafka, r *kgo.Record) {
	k.tb.Helper()
	cl, err := client.New(append(k.Opts(), kgo.RecordPartitioner(kgo.ManualPartitioner()), client.LargeBatches())...)
	if err != nil {
		k.tb.Fatalf("consumertest: import: client: %v", err)
	}
	defer cl.Close()
	ctx, cancel := k.within()
	defer cancel()
	if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
		k.tb.Fatalf("consumertest: import: produce a record of %d bytes to topic %q: %v", client.Size(r), r.Topic, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.produced = append(k.produced, r)
}

// Fixed waits until the records of all letters were handled. When nothing more will become of the
// others, it fails the test: its message has these by class, with the first of each.
func (k *Kafka) Fixed(l *Letters) {
	k.tb.Helper()
	for _, r := range l.Records {
		k.siblingsOf(r.Topic)
	}
	patience := k.patience()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	look, pause := time.NewTimer(firstLook), firstLook
	defer look.Stop()
	for began, next := time.Now(), 0; next < len(l.Records); {
		n, changed := k.journal.times(positionOf(l.Records[next]))
		if n > 0 {
			next++
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			k.tb.Fatalf("consumertest: %s", unfixed(k, l, fmt.Sprintf(" within %v", patience)))
		case <-look.C:
			if allFinal(ctx, k, l) {
				k.tb.Fatalf("consumertest: %s", unfixed(k, l, ""))
			}
			pause = max(pause, min(time.Since(began)/10, longestPause))
			look.Reset(pause)
		}
	}
}

// fate is what became of a record that was not handled: a class of failures, and its message.
type fate struct {
	class, message string
	final          bool
}

// fates returns what became of the records that were not handled.
func fates(ctx context.Context, k *Kafka, l *Letters) (map[position]fate, error) {
	last := map[position]lastCopy{}
	for _, r := range l.Records {
		if n, _ := k.journal.times(positionOf(r)); n == 0 {
			last[positionOf(r)] = lastCopy{}
		}
	}
	if _, err := k.findCopies(ctx, last); err != nil {
		return nil, err
	}
	all := map[position]fate{}
	for at, c := range last {
		classes, _ := k.journal.discards(at)
		switch {
		case len(classes) > 0:
			all[at] = fate{class: "discarded, class " + classes[0], final: true}
		case c.record == nil:
			all[at] = fate{class: "not failed yet"}
		case c.meta.Reason == "":
			all[at] = fate{class: c.meta.Class + ", to be tried again", message: c.meta.Message}
		default:
			all[at] = fate{class: c.meta.Class, message: c.meta.Message, final: true}
		}
	}
	return all, nil
}

// allFinal reports whether all is done with each record that was not handled.
func allFinal(ctx context.Context, k *Kafka, l *Letters) bool {
	all, err := fates(ctx, k, l)
	for _, f := range all {
		if !f.final {
			return false
		}
	}
	return err == nil && len(all) > 0
}

// unfixed describes the letters whose records were not handled. waited says for how long the test
// waited for them.
func unfixed(k *Kafka, l *Letters, waited string) string {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	all, err := fates(ctx, k, l)
	if err != nil {
		return fmt.Sprintf("the letters are not all fixed%s, and where they are could not be read: %v", waited, err)
	}
	counts, firsts, order := map[string]int{}, map[string]string{}, []string(nil)
	for i, r := range l.Records {
		f, failed := all[positionOf(r)]
		if !failed {
			continue
		}
		if counts[f.class]++; counts[f.class] == 1 {
			order = append(order, f.class)
			firsts[f.class] = fmt.Sprintf("letter %v, record %v: %s%s", l.letters[i], positionOf(r), f.message, k.journal.lastCall(positionOf(r)))
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return counts[b] - counts[a] })
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d letters are not fixed%s", len(all), len(l.Records), waited)
	if l.Skipped > 0 {
		fmt.Fprintf(&b, "; %d more were skipped, since the file lacks their value", l.Skipped)
	}
	for _, class := range order {
		fmt.Fprintf(&b, "\n%d %s, the first is %s", counts[class], class, firsts[class])
	}
	return b.String()
}
