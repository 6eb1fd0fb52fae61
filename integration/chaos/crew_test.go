package chaos

import (
	"path/filepath"
	"testing"

	"github.com/sidingkafka/siding/integration/chaos/internal/child"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// A member that a record has killed ended then, also if a fault ends it later.
func TestCrewMember_EndsOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*crewMember){"kill": (*crewMember).kill, "term": (*crewMember).term} {
		for _, by := range []int64{0, 7} {
			p, err := child.Start("of no role, which ends at once", nil, filepath.Join(t.TempDir(), "a.log"))
			if err != nil {
				t.Fatal(err)
			}
			<-p.Exited
			m := &crewMember{proc: p, Member: trace.Member{Ended: by}}
			if end(m); m.Ended == 0 || by != 0 && m.Ended != by {
				t.Errorf("%s: ended at %d, want %d", name, m.Ended, by)
			}
		}
	}
}
