package look_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// What broke, where in the code, since when and in which release: the first questions of whoever is
// on call had answers only in each letter.
func TestFoldFailures_SaysWhatBrokeAndWhereFirst(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Topic(t, "pay.dlq", 1, nil)
	b.Topic(t, "pay.dlq.ledger", 1, nil)
	for _, l := range []struct {
		ago                             time.Duration
		fingerprint, stack, host, about string
	}{
		{30 * time.Minute, "00000000000000aa", "acme/billing.Charge(0x1)\n\t/app/fx.go:121 +0x1d\n", "billing-9", "no rate for USD"},
		{90 * time.Minute, "00000000000000aa", "acme/billing.Charge(0x1)\n\t/app/fx.go:118 +0x1d\n", "billing-7f", "no rate for EUR"},
		{60 * time.Minute, "00000000000000bb", "", "", "no table"},
	} {
		b.Produce(t, roottest.Letter("pay.dlq", 0, l.ago, headers.Meta{
			Class: "tax", Group: "billing", Fingerprint: l.fingerprint, Stack: l.stack, Host: l.host, Version: l.host, Message: l.about,
		}))
	}
	got := b.Redrive(t, "summary", "pay.dlq")
	roottest.Prints(t, got, cli.ExitDone, `
COUNT  CLASS  FINGERPRINT       FIRST      LAST     SHOW  SAMPLE
    3  tax    2 fingerprints    1h30m ago  30m ago
    2         00000000000000aa  1h30m ago  30m ago  0:1   no rate for EUR
  in billing.Charge, fx.go:118, first on billing-7f, release billing-7f
    1         00000000000000bb  1h ago     1h ago   0:2   no table
`, "")
	got = b.Redrive(t, "summary", "pay.dlq", "-o", "json", "--redact-pattern", "rate|Charge", "--redact-header", "dlq-host")
	roottest.Prints(t, got, cli.ExitDone, `"frame":"billing.Charge, fx.go:118","host":"[redacted]","version":"billing-7f"}`, "")
	roottest.Prints(t, got, cli.ExitDone, `"classes":[{"count":3,"class":"tax","other":false,"fingerprints":2}]`, "")
}
