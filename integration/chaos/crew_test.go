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

// A member without a process stayed among the members, and the end of the run panicked.
func TestCrew_HasNoMemberThatDidNotStart(t *testing.T) {
	t.Parallel()
	nowhere := Config{Dir: filepath.Join(t.TempDir(), "none")}
	c := &crew{cfg: nowhere, services: []trace.Service{{}}, seeds: func() []string { return nil }}
	if m, err := c.start(0); err == nil {
		t.Fatalf("%s started", m.Job.Name)
	}
	c.close()
	if all := c.list(&c.all); len(all) > 0 {
		t.Errorf("the crew has %v", all)
	}
}
