package operate

import (
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/api"
)

// The id of an event comes back from a client, which may send anything. Whoever sends the last id
// gets nothing twice, and whoever sends something else gets the present state.
func FuzzLater_KnowsItsOwnIDs(f *testing.F) {
	for _, id := range []string{"", "-", "--", "1-done-abc", "99999999999999999999-done-x", "-1-done-x", "1-done", "NaN-done-x"} {
		f.Add(id, int64(1_790_000_000_000), "aborted", "c1a1")
	}
	f.Fuzz(func(t *testing.T, id string, at int64, state, claim string) {
		now := eventID(&api.Run{Heartbeat: time.UnixMilli(at % (1 << 42)), State: state, Claim: claim})
		_ = later(now, id)
		_ = later(id, now)
		if at%(1<<42) >= 0 && later(now, now) {
			t.Errorf("%q is later than itself", now)
		}
		if !strings.Contains(id, "-") && !later(now, id) {
			t.Errorf("%q hides %q", id, now)
		}
	})
}
