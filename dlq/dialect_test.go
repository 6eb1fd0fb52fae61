package dlq

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
)

// written is when the letters of the tests were written.
var written = time.UnixMilli(1_800_000_000_000)

// produced is a record's own time.
var produced = time.UnixMilli(1_799_999_000_000)

func int32Of(n int32) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }
func int64Of(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// foreignOf is a letter with these headers, key and value by turns.
func foreignOf(pairs ...string) *kgo.Record {
	r := &kgo.Record{Topic: "orders-dlt", Partition: 1, Offset: 9, Timestamp: written, Key: []byte("k"), Value: []byte("v")}
	for i := 0; i < len(pairs); i += 2 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: pairs[i], Value: []byte(pairs[i+1])})
	}
	return r
}

// springTrace is what Spring's containers throw around a listener's exception.
const springTrace = `org.springframework.kafka.listener.ListenerExecutionFailedException: Listener failed
	at org.springframework.kafka.listener.KafkaMessageListenerContainer$ListenerConsumer.decorateException(KafkaMessageListenerContainer.java:2874)
Caused by: org.springframework.kafka.listener.TimestampedException: Exception thrown at 2026-01-01T00:00:00Z
	at org.springframework.kafka.listener.adapter.KafkaBackoffAwareMessageListenerAdapter.onMessage(KafkaBackoffAwareMessageListenerAdapter.java:133)
	... 5 more
Caused by: com.example.billing.TaxException: no rate for region 17
	at com.example.billing.Tax.rate(Tax.java:42)
	at com.example.billing.Listener.onOrder(Listener.java:17)
	... 11 more
`

// springSet is the headers of Spring's recoverer about one failure.
func springSet(topic string, partition int32, offset int64) []string {
	return []string{
		"kafka_dlt-original-topic", topic, "kafka_dlt-original-partition", int32Of(partition), "kafka_dlt-original-offset", int64Of(offset),
		"kafka_dlt-original-timestamp", int64Of(produced.UnixMilli()), "kafka_dlt-original-timestamp-type", "CreateTime", "kafka_dlt-original-consumer-group", "billing",
	}
}

var springError = []string{
	"kafka_dlt-exception-fqcn", "org.springframework.kafka.listener.ListenerExecutionFailedException", "kafka_dlt-exception-cause-fqcn", "com.example.billing.TaxException",
	"kafka_dlt-exception-message", "Listener failed", "kafka_dlt-exception-stacktrace", springTrace,
}

func list(parts ...[]string) (all []string) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// dialectCases has letters as each program writes them, and what they say.
func dialectCases() map[string]struct {
	letter  *kgo.Record
	dialect string
	want    headers.Meta
} {
	type of = struct {
		letter  *kgo.Record
		dialect string
		want    headers.Meta
	}
	at := func(topic string, partition int32, offset int64, when time.Time) headers.Position {
		return headers.Position{Topic: topic, Partition: partition, Offset: offset, Timestamp: when}
	}
	tax := headers.Meta{
		Original: at("orders", 3, 41, produced), Group: "billing", Class: "com.example.billing.TaxException", Message: "no rate for region 17",
		Stack: springTrace, Fingerprint: classify.Fingerprint("com.example.billing.TaxException", "no rate for region 8", "com.example.billing.Tax.rate"), FailedAt: written,
	}
	retried := tax
	retried.Attempts = 4
	noted := func(m headers.Meta, frame string) headers.Meta {
		m.Fingerprint = classify.Fingerprint(m.Class, m.Message, frame)
		return m
	}
	json := "com.fasterxml.jackson.JsonParseException: Unexpected character\n\tat com.fasterxml.jackson.Parser.parse(Parser.java:1)\n"
	omitted := foreignOf("__dlq.errors.topic", "orders", "__dlq.errors.partition", "2", "__dlq.errors.offset", "7", "__dlq.errors.group", "share", "__dlq.errors.delivery.count", "5",
		"__dlq.errors.message", "Offset rejected by client.")
	omitted.Key, omitted.Value = nil, nil
	return map[string]of{
		"spring": {foreignOf(list(springSet("orders", 3, 41), springError)...), "spring", tax},
		"spring, failed in its dead-letter topic again": {
			foreignOf(list(springSet("orders", 3, 41), springSet("orders-dlt", 1, 8), springError)...), "spring", tax,
		},
		"spring, a key that cannot be read": {
			foreignOf(append(springSet("orders", 3, 41)[:10:10], "kafka_dlt-key-exception-fqcn", "org.springframework.kafka.DeserializationException", "kafka_dlt-key-exception-message", "failed")...), "spring",
			noted(headers.Meta{Original: at("orders", 3, 41, produced), Class: "org.springframework.kafka.DeserializationException", Message: "failed", FailedAt: written}, ""),
		},
		"spring-retry": {
			foreignOf(list([]string{
				"kafka_original-topic", "orders", "kafka_original-partition", int32Of(3), "kafka_original-offset", int64Of(41), "kafka_original-timestamp", int64Of(produced.UnixMilli()),
				"kafka_dlt-original-consumer-group", "billing", "retry_topic-attempts", int32Of(2), "retry_topic-attempts", int32Of(5), "retry_topic-backoff-timestamp", "\x01\x02",
				"kafka_exception-fqcn", "org.springframework.kafka.listener.ListenerExecutionFailedException",
				"kafka_exception-cause-fqcn", "org.springframework.kafka.listener.TimestampedException", "kafka_exception-message", "Listener failed", "kafka_exception-stacktrace", springTrace,
			})...), "spring-retry", retried,
		},
		"spring-retry of an old version": {
			foreignOf("kafka_original-topic", "orders", "retry_topic-attempts", "\x03"), "spring-retry",
			noted(headers.Meta{Original: at("orders", -1, -1, time.Time{}), Attempts: 2, Class: "unclassified", FailedAt: written}, ""),
		},
		"spring-cloud-stream": {
			foreignOf("x-original-topic", "orders", "x-original-partition", int32Of(3), "x-original-offset", int64Of(41), "x-original-timestamp", int64Of(produced.UnixMilli()),
				"x-exception-fqcn", "org.springframework.messaging.MessageHandlingException", "x-exception-message", "error; no rate", "x-exception-stacktrace", springTrace),
			"spring-cloud-stream",
			headers.Meta{Original: tax.Original, Class: tax.Class, Message: tax.Message, Stack: tax.Stack, Fingerprint: tax.Fingerprint, FailedAt: written},
		},
		"connect": {
			foreignOf("mine", "x", "__connect.errors.topic", "orders", "__connect.errors.partition", "3", "__connect.errors.offset", "41", "__connect.errors.connector.name", "sink",
				"__connect.errors.task.id", "0", "__connect.errors.stage", "VALUE_CONVERTER", "__connect.errors.exception.class.name", "org.apache.kafka.connect.errors.DataException",
				"__connect.errors.exception.message", "", "__connect.errors.exception.stacktrace", json), "connect",
			noted(headers.Meta{Original: at("orders", 3, 41, written), Group: "connect-sink", Class: "org.apache.kafka.connect.errors.DataException", Stack: json}, "com.fasterxml.jackson.Parser.parse"),
		},
		"streams": {
			foreignOf("__streams.errors.exception", "org.apache.kafka.streams.errors.StreamsException", "__streams.errors.message", "Size of data is not 4", "__streams.errors.stacktrace", json,
				"__streams.errors.topic", "app-repartition", "__streams.errors.partition", "0", "__streams.errors.offset", "0"), "streams",
			noted(headers.Meta{Original: at("app-repartition", 0, 0, written), Class: "com.fasterxml.jackson.JsonParseException", Message: "Unexpected character", Stack: json}, "com.fasterxml.jackson.Parser.parse"),
		},
		"share-group": {
			omitted, "share-group",
			noted(headers.Meta{Original: at("orders", 2, 7, time.Time{}), Group: "share", Attempts: 5, Class: "unclassified", Message: "Offset rejected by client.", FailedAt: written, ValueOmitted: true}, ""),
		},
		"smallrye, twice": {
			foreignOf("dead-letter-exception-class-name", "java.lang.IllegalStateException", "dead-letter-reason", "second", "dead-letter-topic", "dead-letter-topic-in", "dead-letter-partition", "0", "dead-letter-offset", "2",
				"dead-letter-exception-class-name", "java.lang.RuntimeException", "dead-letter-reason", "first", "dead-letter-topic", "orders", "dead-letter-partition", "3", "dead-letter-offset", "41"), "smallrye",
			noted(headers.Meta{Original: at("orders", 3, 41, time.Time{}), Class: "java.lang.IllegalStateException", Message: "second", FailedAt: written}, ""),
		},
		"karafka": {
			foreignOf("source_topic", "orders", "source_partition", "3", "source_offset", "41", "source_consumer_group", "app", "source_attempts", "3"), "karafka",
			noted(headers.Meta{Original: at("orders", 3, 41, time.Time{}), Group: "app", Attempts: 3, Class: "unclassified", FailedAt: written}, ""),
		},
		"karafka's pipes are none": {foreignOf("source_topic", "orders", "source_partition", "3", "source_offset", "41", "source_consumer_group", "app"), "", headers.Meta{}},
		"watermill": {
			foreignOf("reason_poisoned", "no rate", "topic_poisoned", "orders", "handler_poisoned", "tax", "subscriber_poisoned", "kafka"), "watermill",
			noted(headers.Meta{Original: at("orders", -1, -1, time.Time{}), Class: "unclassified", Message: "no rate", FailedAt: written}, ""),
		},
		"two dialects, of which the last counts": {
			foreignOf("reason_poisoned", "no rate", "topic_poisoned", "other", "__connect.errors.topic", "orders"), "connect",
			noted(headers.Meta{Original: at("orders", -1, -1, written), Class: "unclassified"}, ""),
		},
		"nobody's": {foreignOf("x", "y"), "", headers.Meta{}},
	}
}

// Letters of other frameworks are read as far as they say enough: each as its own sources write it.
func TestDialect_ReadsWhatItsProgramWrites(t *testing.T) {
	t.Parallel()
	for name, c := range dialectCases() {
		l := newLetter(c.letter, builtin)
		if diff := cmp.Diff(c.want, l.Meta); diff != "" || l.Dialect != c.dialect {
			t.Errorf("%s is of dialect %q (-want +got):\n%s", name, l.Dialect, diff)
		}
		if (l.MetaErr != nil) != (c.dialect == "") || l.Damaged() {
			t.Errorf("%s: %v", name, l.MetaErr)
		}
		if own := l.Own(); own.Dialect != "" || own.Meta.Class != "" || own.MetaErr == nil || own.Record != l.Record {
			t.Errorf("%s: without its dialect it is %+v", name, own)
		}
		if newLetter(c.letter, nil).Dialect != "" {
			t.Errorf("%s is read by a reader without dialects", name)
		}
	}
}

// One header that cannot be read is an error, and the others are read.
func TestDialect_ABrokenHeaderIsAnErrorAboutIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   []string // key and value: these replace the set's
		key      string
		why      error
		original headers.Position
	}{
		"a partition of 8 bytes":           {[]string{"kafka_dlt-original-partition", int64Of(3)}, "kafka_dlt-original-partition", headers.ErrSyntax, headers.Position{Topic: "orders", Partition: -1, Offset: 41, Timestamp: produced}},
		"a negative partition":             {[]string{"kafka_dlt-original-partition", int32Of(-3)}, "kafka_dlt-original-partition", headers.ErrRange, headers.Position{Topic: "orders", Partition: -1, Offset: 41, Timestamp: produced}},
		"an offset as text":                {[]string{"kafka_dlt-original-offset", "41"}, "kafka_dlt-original-offset", headers.ErrSyntax, headers.Position{Topic: "orders", Partition: 3, Offset: -1, Timestamp: produced}},
		"a negative offset":                {[]string{"kafka_dlt-original-offset", int64Of(-1)}, "kafka_dlt-original-offset", headers.ErrRange, headers.Position{Topic: "orders", Partition: 3, Offset: -1, Timestamp: produced}},
		"a time of no bytes":               {[]string{"kafka_dlt-original-timestamp", ""}, "kafka_dlt-original-timestamp", headers.ErrSyntax, headers.Position{Topic: "orders", Partition: 3, Offset: 41}},
		"a topic that can be none":         {[]string{"kafka_dlt-original-topic", "or ders"}, "kafka_dlt-original-topic", headers.ErrSyntax, headers.Position{}},
		"a topic of a mebibyte":            {[]string{"kafka_dlt-original-topic", strings.Repeat("a", 1<<20)}, "kafka_dlt-original-topic", headers.ErrSyntax, headers.Position{}},
		"a group that is no text":          {[]string{"kafka_dlt-original-consumer-group", "\xff"}, "kafka_dlt-original-consumer-group", headers.ErrSyntax, headers.Position{Topic: "orders", Partition: 3, Offset: 41, Timestamp: produced}},
		"a time before there was any":      {[]string{"kafka_dlt-original-timestamp", int64Of(-1)}, "", nil, headers.Position{Topic: "orders", Partition: 3, Offset: 41}},
		"a second topic without an offset": {[]string{"kafka_dlt-original-topic+", "orders-dlt"}, "kafka_dlt-original-partition", headers.ErrMissing, headers.Position{Topic: "orders", Partition: -1, Offset: -1, Timestamp: produced}},
	} {
		set := springSet("orders", 3, 41)
		key, more := strings.CutSuffix(c.change[0], "+")
		if more {
			set = append(set, key, c.change[1])
		} else {
			for i := 0; i < len(set); i += 2 {
				if set[i] == key {
					set[i+1] = c.change[1]
				}
			}
		}
		l := newLetter(foreignOf(list(set, springError)...), builtin)
		field, broken := errors.AsType[*headers.FieldError](l.MetaErr)
		if broken != (c.why != nil) || broken && (field.Key != c.key || !errors.Is(field, c.why) || len(field.Value) > 64) || l.Damaged() != broken {
			t.Errorf("%s: %v, want %v about %s", name, l.MetaErr, c.why, c.key)
		}
		if diff := cmp.Diff(c.original, l.Meta.Original); diff != "" || l.Dialect != "spring" || l.Meta.Class != "com.example.billing.TaxException" {
			t.Errorf("%s: %q of %s\n%s", name, l.Meta.Class, l.Dialect, diff)
		}
	}
}

// A letter of siding's that Spring copied, or that has Spring's headers from the source, stays
// siding's.
func TestDialect_OwnHeadersComeFirst(t *testing.T) {
	t.Parallel()
	r := foreignOf(springSet("orders", 3, 41)...)
	own := headers.Meta{Original: headers.Position{Topic: "payments", Partition: 1, Offset: 2}, Group: "mail", Attempts: 1, Class: "tax", Reason: headers.ReasonTerminal, FailedAt: written}
	r.Headers = own.Append(r.Headers)
	if l := newLetter(r, builtin); l.Dialect != "" || l.Meta.Group != "mail" || l.MetaErr != nil {
		t.Errorf("%+v", l)
	}
	// A redriven record that another program dead-lettered keeps the mark of its run.
	r = foreignOf(list(springSet("orders", 3, 41), springError)...)
	r.Headers = (&headers.Meta{Redrive: headers.Redrive{ID: "run-1", Count: 2, From: headers.Position{Topic: "orders.dlq", Partition: 1, Offset: 5}}}).Append(r.Headers)
	if l := newLetter(r, builtin); l.Dialect != "spring" || l.Meta.Redrive.ID != "run-1" || l.Meta.Redrive.Count != 2 || l.Meta.Group != "billing" {
		t.Errorf("%+v, %v", l, l.MetaErr)
	}
}

// A class that is too long keeps its end, which tells classes of one package apart.
func TestDialect_ALongClassKeepsItsEnd(t *testing.T) {
	t.Parallel()
	for class, want := range map[string]string{
		strings.Repeat("a.", 100) + "TaxException": strings.Repeat("a.", 58) + "TaxException",
		"com.example.Größe$1":                      "com.example.Gr__e_1",
		" ":                                        "unclassified",
		strings.Repeat("ü", 200):                   strings.Repeat("_", 128),
	} {
		l := newLetter(foreignOf("kafka_dlt-original-topic", "orders", "kafka_dlt-exception-fqcn", class), builtin)
		if l.Meta.Class != want || !classify.ValidClass(want) {
			t.Errorf("%.20q… is %q, want %q", class, l.Meta.Class, want)
		}
	}
}

// The frames of a framework fill a stack: of one that is too long the cause stays.
func TestDialect_ALongStackKeepsItsCause(t *testing.T) {
	t.Parallel()
	cause := springTrace[strings.LastIndex(springTrace, "Caused by: "):]
	trace := strings.Replace(springTrace, "\nCaused by: org", strings.Repeat("\n\tat org.springframework.Frame.frame(Frame.java:1)", 1000)+"\nCaused by: org", 1)
	l := newLetter(foreignOf(list(springSet("orders", 3, 41), springError[:6:6], []string{"kafka_dlt-exception-stacktrace", trace})...), builtin)
	if l.Meta.Stack != cause || l.Meta.Message != "no rate for region 17" {
		t.Errorf("%q of %q", l.Meta.Stack, l.Meta.Message)
	}
}

// The documentation of the dialects names each with the headers by which it is recognized.
func TestBuiltinDialects_AreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/dialects.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range BuiltinDialects() {
		_, row, ok := strings.Cut(string(page), "\n| `"+d.Name+"` |")
		row, _, _ = strings.Cut(row, "\n")
		for _, key := range d.Detect {
			ok = ok && strings.Contains(row, "`"+key+"`")
		}
		if !ok {
			t.Errorf("docs/dialects.md has no row of %s with %q", d.Name, d.Detect)
		}
	}
}

// A producer forges headers: whatever they are, nothing panics, a place is whole or unknown, and
// each text is bounded.
func FuzzDialect_TakesAnyHeaders(f *testing.F) {
	var keys []string
	for _, d := range BuiltinDialects() {
		of := d.keys()
		keys = append(append(keys, of[:]...), d.Detect...)
	}
	keys = append(keys, "dlq-meta", "x")
	for _, c := range dialectCases() {
		var b []byte
		for _, h := range c.letter.Headers {
			for i, key := range keys {
				if key == h.Key {
					b = append(append(append(b, byte(i)), bytes.ReplaceAll(h.Value, []byte("\n"), nil)...), '\n')
					break
				}
			}
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := foreignOf()
		for line := range bytes.SplitSeq(b, []byte("\n")) {
			if len(line) > 0 {
				r.Headers = append(r.Headers, kgo.RecordHeader{Key: keys[int(line[0])%len(keys)], Value: line[1:]})
			}
		}
		l := newLetter(r, builtin)
		m := &l.Meta
		if l.Dialect == "" {
			return
		}
		at := m.Original
		if at.Partition < -1 || at.Offset < -1 || at.Topic == "" && at != (headers.Position{}) || len(at.Topic) > 249 {
			t.Errorf("%+v", at)
		}
		if !classify.ValidClass(m.Class) || !validFingerprint(m.Fingerprint) || len(m.Message) > headers.MaxMessage || len(m.Stack) > headers.MaxStack || len(m.Group) > maxName || m.Attempts < 0 {
			t.Errorf("%+v", m)
		}
		if again := newLetter(r, builtin); fmt.Sprint(again.Meta) != fmt.Sprint(l.Meta) {
			t.Errorf("%+v, and then %+v", l.Meta, again.Meta)
		}
	})
}
