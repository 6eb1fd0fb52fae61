package output

import (
	"testing"
)

func TestFormat_EachIsWhatItWas(t *testing.T) {
	t.Parallel()
	for _, f := range []Format{Table, JSON, JSONL} {
		s, out, _ := fixed(f)
		l := s.List()
		for _, r := range rows {
			add(t, l, sampled(r...)...)
		}
		end(t, l)
		golden(t, "list."+string(f), out.Bytes())

		s, out, _ = fixed(f)
		if err := s.Object(sampled(rows[1]...)...); err != nil {
			t.Fatal(err)
		}
		golden(t, "object."+string(f), out.Bytes())
	}
}
