package dlq

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

func TestAFilterSelectsWhatFitsAllItsFields(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_000_000)
	letter := &Letter{
		Record: &kgo.Record{Timestamp: at.Add(time.Hour)},
		Meta: headers.Meta{
			Class: "net.timeout", Fingerprint: "0123456789abcdef", Group: "billing", Reason: headers.ReasonExhausted, FailedAt: at,
		},
	}
	silent := &Letter{Record: &kgo.Record{Timestamp: at}, MetaErr: headers.ErrMissing}
	for _, c := range []struct {
		name string
		f    Filter
		l    *Letter
		want bool
	}{
		{"everything", Filter{}, letter, true},
		{"class", Filter{Classes: []string{"a", "net.timeout"}}, letter, true},
		{"another class", Filter{Classes: []string{"net"}}, letter, false},
		{"fingerprint", Filter{Fingerprints: []string{"0123456789abcdef"}}, letter, true},
		{"another fingerprint", Filter{Fingerprints: []string{"0"}}, letter, false},
		{"group", Filter{Groups: []string{"billing"}}, letter, true},
		{"another group", Filter{Groups: []string{"shipping"}}, letter, false},
		{"reason", Filter{Reasons: []headers.Reason{headers.ReasonPanic, headers.ReasonExhausted}}, letter, true},
		{"another reason", Filter{Reasons: []headers.Reason{headers.ReasonPanic}}, letter, false},
		{"one field fits, one does not", Filter{Classes: []string{"net.timeout"}, Groups: []string{"shipping"}}, letter, false},
		{"since then", Filter{Since: at}, letter, true},
		{"since later", Filter{Since: at.Add(1)}, letter, false},
		{"until then", Filter{Until: at}, letter, false},
		{"until later", Filter{Until: at.Add(1)}, letter, true},
		{"without a time of failure", Filter{Since: at, Until: at.Add(1)}, silent, true},
		{"without a class", Filter{Classes: []string{"net.timeout"}}, silent, false},
		{"match", Filter{Match: func(l *Letter) bool { return l.Meta.Group == "billing" }}, letter, true},
		{"no match", Filter{Match: func(*Letter) bool { return false }}, letter, false},
	} {
		if got := c.f.Selects(c.l); got != c.want {
			t.Errorf("%s: Selects = %v, want %v", c.name, got, c.want)
		}
	}
	Filter := Filter{Groups: []string{"x"}, Match: func(*Letter) bool { t.Error("Match is asked about a letter that does not fit"); return true }}
	Filter.Selects(letter)
}

func TestOnlySelectedLettersAreRead(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, k *kafka) {
		for i, class := range []string{"a", "b", "a", "c"} {
			k.write(t, "one.dlq", &kgo.Record{Value: []byte{byte('0' + i)}}, headers.Meta{Class: class})
		}
		got, errs := k.read(t.Context(), "one.dlq", Filter{Classes: []string{"a", "c"}}, Cursor{})
		check(t, got, errs, "0:0", "0:2", "0:3")
	})
}
