package dlq

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A name or a header that two dialects share would make it a matter of chance which one is read.
func TestNewDialects_RefusesWhatClashes(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]Dialect{
		`dialect "spring": there is another one of this name`:                       {Name: "spring", Detect: []string{"mine"}},
		`dialect "ours": "source_topic" is a header that detects dialect "karafka"`: {Name: "ours", Detect: []string{"source_topic"}},
		`dialect "Ours": its name has to be 1 to 32 of a-z, 0-9 and -`:              {Name: "Ours", Detect: []string{"mine"}},
		`dialect "ours": Detect has to have 1 to 8 keys of headers`:                 {Name: "ours"},
		`dialect "ours": a key of Detect is empty`:                                  {Name: "ours", Detect: []string{""}},
		`dialect "ours": "dlq-group" is a header of siding`:                         {Name: "ours", Detect: []string{"mine"}, Group: "dlq-group"},
		`dialect "ours": "t" is the key of two things`:                              {Name: "ours", Detect: []string{"mine"}, Topic: "t", Class: "t"},
		`dialect "ours": an offset needs a partition, and a partition a topic`:      {Name: "ours", Detect: []string{"mine"}, Topic: "t", Offset: "o"},
	} {
		if known, err := NewDialects(d); known != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	known, err := NewDialects(Dialect{Name: "ours", Detect: []string{"error"}})
	if err != nil || !slices.Contains(known.Names(), "ours") || !slices.Contains(known.Names(), "spring") || (*Dialects)(nil).Names() != nil {
		t.Errorf("%v, %v", known.Names(), err)
	}
}

// A team's own dialect is read wherever letters are, and a summary counts letters by their
// dialects.
func TestDialects_HoldWhereverLettersAreRead(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders.dlq"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	opts := []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	for _, r := range []*kgo.Record{
		foreignOf("error", "tax", "where", "orders"), foreignOf(list(springSet("orders", 3, 41), springError)...),
		foreignOf(list(springSet("orders", 3, 42)[2:], springSet("orders", 3, 42)[:2], []string{"kafka_dlt-original-offset", "x"})...), foreignOf("x", "y"),
	} {
		r.Topic, r.Partition = "orders.dlq", 0
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	known, err := NewDialects(Dialect{Name: "ours", Detect: []string{"error"}, Class: "error", Topic: "where"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var read []string
	for l, err := range known.Read(ctx, "orders.dlq", Filter{Classes: []string{"tax", "com.example.*"}}, Cursor{}, opts...) {
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, l.Dialect+" "+l.Meta.Class)
	}
	if want := []string{"ours tax", "spring com.example.billing.TaxException"}; !slices.Equal(read, want) {
		t.Errorf("read are %q, want %q", read, want)
	}
	for _, c := range []struct {
		known *Dialects
		want  map[string]int64
	}{{builtin, map[string]int64{"spring": 2}}, {known, map[string]int64{"spring": 2, "ours": 1}}, {nil, nil}} {
		ledger := c.known.Ledger("orders.dlq", "orders.dlq.ledger", opts...)
		s, err := ledger.Summarize(ctx, Filter{}, Cursor{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Dialects) != len(c.want) || s.Foreign != 4 {
			t.Errorf("%v of %d letters, want %v", s.Dialects, s.Foreign, c.want)
		}
		for name, n := range c.want {
			if s.Dialects[name] != n {
				t.Errorf("%v, want %v", s.Dialects, c.want)
			}
		}
		if c.known == builtin && (s.Malformed != 1 || !slices.ContainsFunc(s.Failures, func(f Failure) bool {
			return f.Class == "com.example.billing.TaxException" && f.Sample == "no rate for region 17" && f.Frame == "Tax.rate, Tax.java:42" && slices.Equal(f.Groups, []string{"billing"})
		})) {
			t.Errorf("%+v", s)
		}
	}
	n := 0
	for l, err := range (*Dialects)(nil).Ledger("orders.dlq", "orders.dlq.ledger", opts...).Letters(ctx, Filter{Groups: []string{"billing"}}, Cursor{}, OpenOnly) {
		if n++; err != nil || l.Dialect != "" {
			t.Errorf("without dialects: %+v, %v", l, err)
		}
	}
	if n > 0 {
		t.Errorf("without dialects %d letters have a group", n)
	}
}
