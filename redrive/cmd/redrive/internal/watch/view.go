package watch

// What is known of a topic at a moment.

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidingkafka/siding/internal/guards"
	"github.com/sidingkafka/siding/redrive"
)

// view is what one look found. The zero value is that of a topic that was not read yet.
type view struct {
	topic  string
	looked time.Time // when the last look began that missed nothing
	// problem is why the last look missed something.
	problem error

	open, pending, resolved, duplicates int64
	// recent letters came within recentFor, resolved ones included.
	recent         int64
	oldest, newest time.Time // of the open letters: when they came
	groups         []group
	picture        picture

	retention time.Duration // of the topic; zero if it has none or it is not known
	guards    []guards.Guard
	run       *redrive.Outcome
}

const (
	// recentFor is how long a letter is new, and growsFor how long after the last one more are
	// expected.
	recentFor = 5 * time.Minute
	growsFor  = time.Minute
	// newFor is how long a class is new, and quietAfter after which time a group is quiet.
	newFor     = 24 * time.Hour
	quietAfter = time.Hour
)

// group is the open letters of one class and fingerprint.
type group struct {
	class, fingerprint string
	open, recent       int64
	first, last        time.Time // failures
	versions           []string
	sample             sample
	isNew              bool // the class came within newFor
	failedAgain        int64
}

// counts are those of one kind.
type counts struct {
	open, failed, recent int64
	first, last          int64 // failures of the open ones
	began                int64 // when the first of all came
}

// count fills the view with what the letters say.
func (v *view) count(s *letters, now time.Time) {
	kinds := make([]counts, len(s.kinds))
	recent := now.Add(-recentFor).UnixMilli()
	v.open, v.pending, v.resolved, v.duplicates, v.recent = 0, 0, 0, 0, 0
	var oldest, newest int64
	for _, rows := range s.rows {
		for i := range rows {
			r := &rows[i]
			if r.fate == duplicate {
				v.duplicates++
				continue
			}
			k := &kinds[r.kind]
			if k.began == 0 || r.entered < k.began {
				k.began = r.entered
			}
			if r.entered > recent {
				v.recent++
			}
			switch r.fate {
			case pending:
				v.pending++
			case failed:
				k.failed++
				v.resolved++
			case resolved:
				v.resolved++
			default:
				if v.open++; v.open == 1 {
					oldest, newest = r.entered, r.entered
				}
				oldest, newest = min(oldest, r.entered), max(newest, r.entered)
				k.add(r, recent)
			}
		}
	}
	if v.oldest, v.newest = (time.Time{}), (time.Time{}); v.open > 0 {
		v.oldest, v.newest = time.UnixMilli(oldest), time.UnixMilli(newest)
	}
	v.groups = groupsOf(s, kinds, now)
	v.picture = pictureOf(s, now)
}

// add counts an open letter.
func (k *counts) add(r *row, recent int64) {
	if k.open++; k.open == 1 {
		k.first, k.last = r.failed, r.failed
	}
	k.first, k.last = min(k.first, r.failed), max(k.last, r.failed)
	if r.entered > recent {
		k.recent++
	}
}

// groupsOf returns the groups with open letters, by their classes: the class with the most letters
// first, and its groups together.
func groupsOf(s *letters, kinds []counts, now time.Time) []group {
	type name struct{ class, fingerprint string }
	all, of := map[name]*group{}, map[string]int64{}
	began, failed := map[string]int64{}, map[name]int64{}
	for n := range kinds {
		k, c := &s.kinds[n], &kinds[n]
		id := name{k.class, k.fingerprint}
		failed[id] += c.failed
		if at, ok := began[k.class]; c.began > 0 && (!ok || c.began < at) {
			began[k.class] = c.began
		}
		if c.open == 0 {
			continue
		}
		g := all[id]
		if g == nil {
			g = &group{class: k.class, fingerprint: k.fingerprint, first: time.UnixMilli(c.first), sample: *k}
			all[id] = g
		}
		g.open, g.recent, of[k.class] = g.open+c.open, g.recent+c.recent, of[k.class]+c.open
		if first := time.UnixMilli(c.first); first.Before(g.first) {
			g.first = first
		}
		if last := time.UnixMilli(c.last); last.After(g.last) {
			g.last = last
		}
		if k.version != "" && !slices.Contains(g.versions, k.version) {
			g.versions = append(g.versions, k.version)
		}
	}
	var groups []group
	for id, g := range all {
		slices.Sort(g.versions)
		g.isNew = now.Sub(time.UnixMilli(began[g.class])) < newFor
		g.failedAgain = failed[id]
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(of[b.class], of[a.class]), cmp.Compare(a.class, b.class), cmp.Compare(b.open, a.open), cmp.Compare(a.fingerprint, b.fingerprint))
	})
	return groups
}
