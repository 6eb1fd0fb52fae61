package main

import (
	"testing"
)

func TestExport_OfNothingIsEmpty(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	prints(t, b.redrive(t, "export", "orders.dlq", "--class", "none"), exitDone, "", "no open letter of orders.dlq fits")
}
