package serve_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// Whoever is on call sees each class once, with its total, where in the code it fails, and which
// process and release began it. Redaction hides messages, and no line of code.
func TestServer_FoldsGroupsByClass(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	cl, _ := c.serve(serve.Config{Redact: serve.Redact{Patterns: []string{"it failed"}}})
	began := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	const a, b = "00000000000000aa", "00000000000000bb"
	for _, l := range []struct {
		class, fingerprint, host string
		minute                   int
	}{{"tax", a, "billing-9", 9}, {"tax", a, "billing-7f", 2}, {"tax", b, "billing-8", 5}, {"busy", b, "", 0}, {"busy", b, "", 1}} {
		failed := began.Add(time.Duration(l.minute) * time.Minute)
		c.placed(headers.Meta{
			Class: l.class, Fingerprint: l.fingerprint, Group: "billing", Reason: headers.ReasonTerminal, FirstFailedAt: failed, FailedAt: failed,
			Host: l.host, Version: "2.3.1", Stack: "acme/billing.Charge(0x1)\n\t/app/fx.go:118 +0x1d\n",
		}, failed, "{}")
	}
	opens(t, cl, "orders.dlq", 5)
	classes, err := cl.Classes(t.Context(), "orders.dlq", api.Filter{})
	if err != nil || len(classes) != 2 || len(classes[0].Groups) != 2 || len(classes[1].Groups) != 1 {
		t.Fatalf("%+v, %v", classes, err)
	}
	first := api.FirstSeen{At: began.Add(2 * time.Minute), Host: "billing-7f", Version: "2.3.1", Frame: "billing.Charge, fx.go:118", Offset: 1}
	tax := classes[0]
	if tax.Class != "tax" || tax.Open != 3 || !tax.New || !tax.First.Equal(first.At) || !tax.Last.Equal(began.Add(9*time.Minute)) || tax.FirstSeen != first {
		t.Errorf("the largest class is %+v", tax)
	}
	if g := tax.Groups[0]; g.Fingerprint != a || g.Open != 2 || g.FirstSeen != first || g.Sample == "it failed" {
		t.Errorf("its largest group is %+v", g)
	}
	if g := tax.Groups[1]; g.Fingerprint != b || g.FirstSeen.Host != "billing-8" {
		t.Errorf("its other group is %+v", g)
	}
	l, err := cl.Letter(t.Context(), "orders.dlq", 0, 1)
	if err != nil || l.Frame != first.Frame {
		t.Errorf("the letter is in %q, %v", l.Frame, err)
	}
}
