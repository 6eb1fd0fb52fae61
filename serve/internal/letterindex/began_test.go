package letterindex

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// The first letter and the first one of each version are those that a look at all letters finds.
// Copies of other letters do not count.
func TestFirst_IsTheEarliestOfAll(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	b := New("orders.dlq", "")
	for n := range 4 {
		b.kinds.all = append(b.kinds.all, kindData{Kind: Kind{Class: fmt.Sprint("c", n%2), Version: []string{"", "1", "2", "2"}[n]}})
	}
	type letter struct {
		partition int32
		row
	}
	var all []letter
	for id := range int32(2) {
		p := &partition{}
		b.partitions[id] = p
		for n := range int64(3 * chunkRows) {
			r := row{offset: n, entered: 1_000_000 + n, failed: 1 + random.Int64N(1_000_000), kind: uint32(random.IntN(4)), copied: random.IntN(9) == 0}
			p.add(&r)
			all = append(all, letter{id, r})
		}
	}
	for since := int64(0); since < 1_000_000; since += 99_000 {
		f := dlq.Filter{Classes: []string{"c1"}}
		if since > 0 {
			f.Since = time.UnixMilli(since)
		}
		firsts := map[string]int64{}
		var want *letter
		for i := range all {
			l := &all[i]
			kind := &b.kinds.all[l.kind]
			if l.copied || kind.Class != "c1" || l.failed < since {
				continue
			}
			if want == nil || l.failed < want.failed {
				want = l
			}
			if at, ok := firsts[kind.Version]; kind.Version != "" && (!ok || l.failed < at) {
				firsts[kind.Version] = l.failed
			}
		}
		if got, ok := First(b, &f); !ok || got.Partition != want.partition || got.Offset != want.offset {
			t.Errorf("since %d the first is %+v, %v, want %+v", since, got, ok, want)
		}
		var releases []Release
		for version, at := range firsts {
			releases = append(releases, Release{version, time.UnixMilli(at)})
		}
		slices.SortFunc(releases, func(a, b Release) int { return a.First.Compare(b.First) })
		if got := Releases(b, &f); !slices.Equal(got, releases) {
			t.Errorf("since %d the releases are %v, want %v", since, got, releases)
		}
	}
	if _, ok := First(b, &dlq.Filter{Classes: []string{"none"}}); ok {
		t.Error("no letter is the first")
	}
}
