package main

import (
	"bytes"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheServiceChargesWhatItCanAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := `billing/orders/0/0: 1900 cents from card good
billing/orders/0/4: busy
billing/orders/0/4: 2500 cents from card slow
dead letter: orders/0/1, terminal, payment.refused (order 2: the card is refused: reported as stolen)
dead letter: orders/0/2, decode, decode (decode: value as JSON: unexpected end of JSON input)
`
	if got := out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
