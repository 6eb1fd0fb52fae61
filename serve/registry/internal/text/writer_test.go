package text

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestWriter_StringIsReadBack(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for r := range rune(0x3000) {
		all.WriteRune(r)
	}
	w := NewWriter(1 << 20)
	w.String(all.String())
	var got string
	if b, err := w.Text(); err != nil || json.Unmarshal(b, &got) != nil || got != all.String() || w.Whole() != nil {
		t.Errorf("%v: %.100q is read back", err, got)
	}
	w.String("\xff")
	if w.Whole() == nil {
		t.Error("that it is no UTF-8 is not noted")
	}
}

func TestWriter_FloatsAreJSON(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{
		1e21: "1e+21", 0.1: "0.1", 1e-7: "1e-07", 123456789012: "123456789012", math.Inf(1): `"Infinity"`, math.Inf(-1): `"-Infinity"`, math.NaN(): `"NaN"`, math.Copysign(0, -1): "-0",
	} {
		w := NewWriter(100)
		w.Float(f, 64)
		if got, _ := w.Text(); string(got) != want || !json.Valid(got) {
			t.Errorf("%v is %s, want %s", f, got, want)
		}
	}
}

func TestWriter_StopsAtItsSize(t *testing.T) {
	t.Parallel()
	w := NewWriter(10)
	for range 1000 {
		w.Raw("1234567890")
		w.String("x")
		w.Bytes([]byte("x"))
	}
	if _, err := w.Text(); err == nil || len(w.out) > 20 {
		t.Errorf("%v: it has %d bytes", err, len(w.out))
	}
}
