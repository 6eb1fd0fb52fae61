package indent

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		``, ` `, `{`, `null`, ` 1e9 `, `""`, `"\\"`, `"\\\""`, `{}`, `[ ]`, `[{}, [], [[]]]`, `{"a": {"b": [1, "x,]", {"c": null}]}}`,
		"{\n\t\"a\" : [ ]\r\n}\n", `{"a":[{"b":{}}]}`, `"` + "\x7f" + `"`, `[1,2]]`, "\f0",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got, ok := JSON(src, math.MaxInt)
		if ok != json.Valid(src) {
			t.Fatalf("JSON(%q) = %v", src, ok)
		}
		if !ok {
			return
		}
		var want bytes.Buffer
		if err := json.Indent(&want, bytes.Trim(src, space), "", "  "); err != nil {
			t.Fatal(err)
		}
		if got != want.String() {
			t.Fatalf("JSON(%q) = %q, want %q", src, got, want.String())
		}
		if n := length(bytes.Trim(src, space), math.MaxInt); n != len(got) {
			t.Fatalf("the length of %q is %d, not %d", src, len(got), n)
		}
		if _, ok := JSON(src, len(got)); !ok {
			t.Errorf("%q is longer than itself", src)
		}
		if _, ok := JSON(src, len(got)-1); ok {
			t.Errorf("%q is set out beyond its bound", src)
		}
	})
}

// A value of 24 KB, as deep as encoding/json reads, would take 200 MB.
func TestJSON_DeepNestingCostsNothing(t *testing.T) {
	deep := []byte(strings.Repeat("[", 9990) + strings.Repeat("]", 9990))
	per := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := JSON(deep, 16*len(deep)); ok {
				b.Fatal("it is set out")
			}
		}
	})
	if got := per.AllocedBytesPerOp(); got > 16*int64(len(deep)) {
		t.Errorf("%d bytes of memory for %d bytes of JSON", got, len(deep))
	}
}
