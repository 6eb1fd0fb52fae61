package watch

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/incident"
)

// What a ledger has about rules, incidents, classes and runs may come from any client, and is never
// a panic. An incident is read as it was written, and a decision withdraws no later pause: that
// would let a rule run that was paused.
func FuzzDecision_NeverPanic(f *testing.F) {
	for _, text := range []string{"", "null", "{}", "[]", `{"v":9}`, `{"v":1,"opened":"2026-11-23T00:00:00Z","wait":-1}`, `{"v":1,"at":"9999-12-31T23:59:59Z","do":"resumed"}`, `{"first":{"a":1e99}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := incident.Parse(text); err == nil {
			again, err := incident.Parse(s.Note())
			if err != nil || again.On() != s.On() {
				t.Errorf("%s: %+v becomes %+v, %v", text, s, again, err)
			}
		}
		var d Decision
		if json.Unmarshal(text, &d) == nil {
			stop := Decision{At: d.At.Add(time.Hour), Do: DoPause}
			if Standing([]Decision{stop, d}).Do != DoPause {
				t.Errorf("%s withdraws a pause that came after it", text)
			}
			_ = d.Name("a/rule")
		}
		var known knownClasses
		var n RunNote
		for _, into := range []any{&known, &n} {
			_ = json.Unmarshal(text, into)
		}
	})
}
