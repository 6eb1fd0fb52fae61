package redact

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// The headers of a broken letter are shown as they stand there, and quoted in an error. What is
// hidden of a whole one was shown: a text that had to be encoded, and a field that a rule names.
func TestRules_HideTheSameOfABrokenLetter(t *testing.T) {
	t.Parallel()
	const said = "history=2,1:a:0:retry:secret%2C1"
	meta := func(value string) kgo.RecordHeader {
		return kgo.RecordHeader{Key: headers.MetaFields, Value: []byte(value)}
	}
	for _, c := range []struct {
		headers, patterns string
		h                 []kgo.RecordHeader
	}{
		{"", "secret,1", []kgo.RecordHeader{meta("history=2,1:a:0:retry:x;" + said + ";")}},
		{"", "secret,1", []kgo.RecordHeader{meta(said + ",broken;")}},
		{"", "secret,1", []kgo.RecordHeader{meta(said + ";broken")}},
		{"", "secret,1", []kgo.RecordHeader{meta("broken;" + said + ";")}},
		{"", "secret,1", []kgo.RecordHeader{meta("env=x;"), meta(said + ";")}},
		{"", "secret,1", []kgo.RecordHeader{{Key: "dlq-history", Value: []byte("2,1:a:0:retry:secret%2C1,broken")}}},
		{"", "secret;é1", []kgo.RecordHeader{meta("later=secret%3B%C3%A91;")}},
		{"dlq-history", "", []kgo.RecordHeader{meta(said + ";broken")}},
		{"dlq-host", "", []kgo.RecordHeader{meta("host=secret;broken")}},
		{"dlq-host", "", []kgo.RecordHeader{meta("host=secret")}},
		{"dlq-meta", "", []kgo.RecordHeader{meta("host=secret;broken")}},
	} {
		l := dlq.Letter{Record: &kgo.Record{Headers: c.h}}
		l.Meta, l.MetaErr = headers.Parse(c.h)
		shown, _ := rules(t, "", c.headers, c.patterns).Letter(&l)
		if text := fmt.Sprintf("%q %v", shown.Record.Headers, shown.MetaErr); strings.Contains(text, "secret") {
			t.Errorf("%q %q: %q, %v is shown as %s", c.headers, c.patterns, c.h, l.MetaErr, text)
		}
	}
	l := dlq.Letter{Record: &kgo.Record{Headers: []kgo.RecordHeader{meta("env=x;hops=many;")}}}
	l.Meta, l.MetaErr = headers.Parse(l.Record.Headers)
	if shown, _ := rules(t, "", "dlq-host", "secret").Letter(&l); shown.MetaErr.Error() != l.MetaErr.Error() {
		t.Errorf("the error %q is shown as %q", l.MetaErr, shown.MetaErr)
	}
}

// The server and the program show these texts beside the headers.
func TestRules_HideWhoFailedTheLetter(t *testing.T) {
	t.Parallel()
	m := headers.Meta{Host: "node-7", Environment: "customer 4111", Version: "v1", TraceParent: "00-1"}
	shown, _ := rules(t, "", "dlq-host,dlq-traceparent", "4111").Letter(&dlq.Letter{Record: &kgo.Record{}, Meta: m})
	if want := (headers.Meta{Host: Mark, Environment: "customer " + Mark, Version: "v1", TraceParent: Mark}); !reflect.DeepEqual(shown.Meta, want) {
		t.Errorf("shown is %+v, want %+v", shown.Meta, want)
	}
	if host, version := rules(t, "", "dlq-host", "v1").Consumer(m.Host, m.Version); host != Mark || version != Mark {
		t.Errorf("of the first letter of a group %q and %q are shown", host, version)
	}
	m.History = []headers.Attempt{{Message: "secret"}}
	shown, _ = rules(t, "", "DLQ-meta", "").Letter(&dlq.Letter{Record: &kgo.Record{}, Meta: m})
	if want := (headers.Meta{Host: Mark, Environment: Mark, Version: Mark, TraceParent: Mark, History: []headers.Attempt{{Message: Mark}}}); !reflect.DeepEqual(shown.Meta, want) {
		t.Errorf("of dlq-meta %+v is shown, want %+v", shown.Meta, want)
	}
}
