package main

import (
	"strings"
	"testing"
)

func TestExport_OfNothingIsEmpty(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	if got := b.redrive(t, "export", "orders.dlq", "--class", "none"); got.code != exitDone || got.stdout != "" || !strings.Contains(got.stderr, "no open letter of orders.dlq fits") {
		t.Errorf("%+v", got)
	}
}
