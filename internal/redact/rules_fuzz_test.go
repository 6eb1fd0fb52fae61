package redact

import (
	"encoding/json"
	"testing"
)

// Whatever the path and the value: what was JSON is JSON, what is hidden stays hidden, and what no
// path leads to stays byte for byte.
func FuzzRules_HideInJSON(f *testing.F) {
	for _, p := range []string{"customer.card", "items[*].iban", "a[0]['b.c']", "..card", "$..*", "a,b", "[*]", "a[", "..", "a..b[1]"} {
		f.Add(p, `{"customer":{"card":1},"items":[{"iban":"x"}],"a":[{"b.c":[1,{"card":null}]}]}`)
	}
	f.Add("a", `{"a":1,"a":{"a":2}}`)
	f.Add("a.a", " [ {\"\u0061\" : {\"A\":-1e9}} , \"\" ] ")
	f.Add("p.card,..n", `{"p":"{\"card\":[1],\"s\":\"[{\\\"n\\\":1}]\"}","q":"[cut \"n\""}`)
	f.Fuzz(func(t *testing.T, path, value string) {
		r, err := Parse([]Text{{path, "--redact"}}, nil, nil)
		if err != nil {
			return
		}
		shown, hidden := r.Bytes([]byte(value))
		switch {
		case !hidden && string(shown) != value:
			t.Errorf("%q: %q became %q", path, value, shown)
		case !json.Valid([]byte(value)):
		case !json.Valid(shown):
			t.Errorf("%q: %q became %q, which is no JSON", path, value, shown)
		default:
			if again, _ := r.Bytes(shown); string(again) != string(shown) {
				t.Errorf("%q: %q became %q, and that %q", path, value, shown, again)
			}
		}
	})
}
