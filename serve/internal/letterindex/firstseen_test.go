package letterindex

import (
	"fmt"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// "First at 02:14:07 by pod billing-7f, release 2.3.1": also when that letter was resolved, and
// when letters are read out of order.
func TestFirstSeen_IsTheLetterThatFailedFirst(t *testing.T) {
	t.Parallel()
	b := New("orders.dlq", "orders.dlq.ledger")
	b.partitions[0] = &partition{}
	began := time.UnixMilli(1.7e12)
	for i, minute := range []int{7, 3, 5} {
		l := failures("tax", i, 1, began.Add(time.Duration(minute)*time.Minute))[0]
		l.Meta.Fingerprint, l.Meta.Host, l.Meta.Version = "f", fmt.Sprint("pod-", minute), fmt.Sprint("v", minute%2)
		l.Meta.Stack = fmt.Sprintf("acme/billing.Charge()\n\t/app/fx.go:%d\n", minute)
		if minute == 3 {
			l.State = dlq.Succeeded
		}
		b.add([]*dlq.Letter{l})
	}
	want := FirstSeen{At: began.Add(3 * time.Minute), Host: "pod-3", Version: "v1", Frame: "billing.Charge, fx.go:3", Offset: 1}
	for name, f := range map[string]dlq.Filter{"all": {}, "of a class": {Classes: []string{"tax"}}, "of open ones": {States: []dlq.State{""}}, "of a time": {Since: began.Add(6 * time.Minute)}} {
		groups := b.Select(&f).Groups
		if len(groups) != 1 || groups[0].FirstSeen != want {
			t.Errorf("%s: %+v, want first %+v", name, groups, want)
		}
	}
}
