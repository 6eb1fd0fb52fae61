package main

import (
	"testing"
)

func TestExport_OfNothingIsEmpty(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	prints(t, b.redrive(t, "export", "orders.dlq", "--class", "none"), exitDone, "", "no open letter of orders.dlq fits")
}

// An archive without a part of its letters would be none. So an export is byte for byte, also where
// something is to be hidden, and says so.
func TestExport_WarnsThatItRedactsNothing(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	plain := b.redrive(t, "export", "orders.dlq", "--offset", "0:1")
	got := b.redrive(t, "export", "orders.dlq", "--offset", "0:1", "--redact", "sku")
	exactly(t, got, exitDone, plain.stdout, "warning: export writes keys, values and headers byte for byte, for import, and hides nothing\n")
}
