package dlq

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

func TestFilter_SelectsWhatFitsAllItsFields(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_000_000)
	letter := &Letter{
		Record: &kgo.Record{
			Timestamp: at.Add(time.Hour), Partition: 2, Offset: 7, Key: []byte("order-7"),
			Headers: []kgo.RecordHeader{header("tenant", "7"), header("tenant", "8"), header("empty", ""), {Key: "null"}, header(headers.MetaFields, "env=e%3B;host=h;")},
		},
		Meta: headers.Meta{
			Class: "net.timeout", Fingerprint: "0123456789abcdef", Group: "billing", Reason: headers.ReasonExhausted, FailedAt: at, Attempts: 4,
		},
	}
	silent := &Letter{Record: &kgo.Record{Timestamp: at}, MetaErr: headers.ErrMissing}
	starred := &Letter{Record: &kgo.Record{}, Meta: headers.Meta{Class: "*fs.PathError"}}
	for _, c := range []struct {
		name string
		f    Filter
		l    *Letter
		want bool
	}{
		{"everything", Filter{}, letter, true},
		{"class", Filter{Classes: []string{"a", "net.timeout"}}, letter, true},
		{"another class", Filter{Classes: []string{"net"}}, letter, false},
		{"prefix", Filter{Classes: []string{"net.*"}}, letter, true},
		{"class as a prefix", Filter{Classes: []string{"net.timeout*"}}, letter, true},
		{"any class", Filter{Classes: []string{"*"}}, letter, true},
		{"another prefix", Filter{Classes: []string{"net.timeouts*"}}, letter, false},
		{"prefix with a star inside", Filter{Classes: []string{"*fs.Path*"}}, starred, true},
		{"star inside", Filter{Classes: []string{"*Error", "*fs.*Error"}}, starred, false},
		{"class that ends in a star", Filter{Classes: []string{"a*"}}, &Letter{Record: silent.Record, Meta: headers.Meta{Class: "a*"}}, true},
		{"any class where there is none", Filter{Classes: []string{"*"}}, silent, false},
		{"fingerprint", Filter{Fingerprints: []string{"0123456789abcdef"}}, letter, true},
		{"another fingerprint", Filter{Fingerprints: []string{"0"}}, letter, false},
		{"group", Filter{Groups: []string{"billing"}}, letter, true},
		{"another group", Filter{Groups: []string{"shipping"}}, letter, false},
		{"reason", Filter{Reasons: []headers.Reason{headers.ReasonPanic, headers.ReasonExhausted}}, letter, true},
		{"another reason", Filter{Reasons: []headers.Reason{headers.ReasonPanic}}, letter, false},
		{"one field fits, one does not", Filter{Classes: []string{"net.timeout"}, Groups: []string{"shipping"}}, letter, false},
		{"state", Filter{States: []State{Succeeded, Compensated}}, &Letter{Record: &kgo.Record{}, State: Compensated}, true},
		{"another state", Filter{States: []State{Discarded, ""}}, &Letter{Record: &kgo.Record{}, State: Compensated}, false},
		{"no state", Filter{States: []State{""}}, silent, true},
		{"since then", Filter{Since: at}, letter, true},
		{"since later", Filter{Since: at.Add(1)}, letter, false},
		{"until then", Filter{Until: at}, letter, false},
		{"until later", Filter{Until: at.Add(1)}, letter, true},
		{"entered since then", Filter{EnteredSince: at.Add(time.Hour)}, letter, true},
		{"entered since later", Filter{EnteredSince: at.Add(time.Hour + 1)}, letter, false},
		{"entered until then", Filter{EnteredUntil: at.Add(time.Hour)}, letter, false},
		{"entered until later", Filter{EnteredUntil: at.Add(time.Hour + 1)}, letter, true},
		{"without a time of failure", Filter{Since: at, Until: at.Add(1)}, silent, true},
		{"without a class", Filter{Classes: []string{"net.timeout"}}, silent, false},
		{"key", Filter{Keys: []string{"order-1", "order-7"}}, letter, true},
		{"another key", Filter{Keys: []string{"order"}}, letter, false},
		{"no key is not the empty one", Filter{Keys: []string{""}}, silent, false},
		{"place", Filter{Ranges: []Range{At(2, 6), At(2, 7)}}, letter, true},
		{"another place", Filter{Ranges: []Range{At(2, 6), At(2, 8), At(1, 7)}}, letter, false},
		{"from there", Filter{Ranges: []Range{{Partition: 2, From: 7}}}, letter, true},
		{"from behind", Filter{Ranges: []Range{{Partition: 2, From: 8}}}, letter, false},
		{"until there", Filter{Ranges: []Range{{Partition: 2, Until: 7}}}, letter, false},
		{"until behind", Filter{Ranges: []Range{{Partition: 2, Until: 8}}}, letter, true},
		{"header", Filter{Headers: map[string][]string{"tenant": {"8"}, "dlq-host": {"g", "h"}, "dlq-environment": {"e;"}}}, letter, true},
		{"header whatever its value", Filter{Headers: map[string][]string{"null": nil, "empty": {}}}, letter, true},
		{"another value of a header", Filter{Headers: map[string][]string{"tenant": {"9"}}}, letter, false},
		{"one header fits, one does not", Filter{Headers: map[string][]string{"tenant": {"7"}, "region": nil}}, letter, false},
		{"match", Filter{Match: func(l *Letter) bool { return l.Meta.Group == "billing" }}, letter, true},
		{"no match", Filter{Match: func(*Letter) bool { return false }}, letter, false},
	} {
		if got := c.f.Selects(c.l); got != c.want {
			t.Errorf("%s: Selects = %v, want %v", c.name, got, c.want)
		}
		if c.f.all() != (c.name == "everything") {
			t.Errorf("%s: all = %v", c.name, c.f.all())
		}
	}
	Filter := Filter{Groups: []string{"x"}, Match: func(*Letter) bool { t.Error("Match is asked about a letter that does not fit"); return true }}
	Filter.Selects(letter)
}

func TestFilter_OnlySelectedLettersAreRead(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for i, class := range []string{"a", "b", "a", "c"} {
			k.write(t, "one.dlq", &kgo.Record{Value: []byte{byte('0' + i)}}, headers.Meta{Class: class})
		}
		k.wantRead(t, "one.dlq", Filter{Classes: []string{"a", "c"}}, Cursor{}, "0:0", "0:2", "0:3")
	})
}
