package dlq

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Whoever is on call sees one class with its total, and where in the code it fails.
func TestSummary_FoldsFailuresByClass(t *testing.T) {
	t.Parallel()
	ta := newSummarizer(NewLedger("t", "l"), Filter{})
	ta.partitions[0] = &summarizedLetter{}
	n := int64(0)
	add := func(class, fingerprint, stack, host string, failed int) {
		m := from(n)
		m.Class, m.Fingerprint, m.Stack, m.Host, m.Version = class, fingerprint, stack, host, "2.3."+host
		m.FailedAt, m.Message = time.Unix(int64(failed), 0), fmt.Sprint(n)
		ta.add(&kgo.Record{Offset: n, Headers: m.Append(nil)})
		n++
	}
	const a, b, c = "000000000000000a", "000000000000000b", "000000000000000c"
	const stack = "acme/billing.Charge()\n\t/app/fx.go:%d\n"
	add("busy", a, "", "", 9)
	add("busy", a, "", "", 8)
	add("tax", b, fmt.Sprintf(stack, 121), "2", 7)
	add("tax", b, fmt.Sprintf(stack, 118), "1", 5)
	add("tax", c, "", "3", 6)
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	want := []ClassCount{
		{Class: "tax", Open: 3, Failures: []Failure{
			{Class: "tax", Fingerprint: b, Count: 2, First: at(5), Last: at(7), Sample: "3", Offset: 3, Frame: "billing.Charge, fx.go:118", Host: "1", Version: "2.3.1", Groups: []string{"billing"}},
			{Class: "tax", Fingerprint: c, Count: 1, First: at(6), Last: at(6), Sample: "4", Offset: 4, Host: "3", Version: "2.3.3", Groups: []string{"billing"}},
		}},
		{Class: "busy", Open: 2, Failures: []Failure{
			{Class: "busy", Fingerprint: a, Count: 2, First: at(8), Last: at(9), Sample: "1", Offset: 1, Version: "2.3.", Groups: []string{"billing"}},
		}},
	}
	if d := cmp.Diff(want, ta.summary().Classes()); d != "" {
		t.Error(d)
	}
}
