package console

import (
	"fmt"
	"slices"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// classRow is the open letters of a class, with their fingerprints if there are several.
type classRow struct {
	groupRow
	Prints []groupRow
	Count  int // of all of them
	// More is how many more fingerprints there are; 0 if all are shown.
	More int
}

// groupRow is a group of open letters: of a class, or of a class and a fingerprint.
type groupRow struct {
	api.Group
	ID string // of the row, for what marks changes
	// Link selects its letters; empty if no filter does: they have no class and no fingerprint.
	Link        string
	SampleLink  string
	Tags        []tag
	First, Last moment
}

// tag is a word about a group.
type tag struct {
	Text, Title string
	Red         bool
}

const (
	// mostClasses bounds the classes of a page, to those with the most letters, and mostPrints the
	// fingerprints of each; allPrints those of a page with one class.
	mostClasses = 100
	mostPrints  = 4
	allPrints   = 200
)

// quietAfter is how long a group must not have failed to be quiet.
const quietAfter = time.Hour

// classRows returns the rows of classes. guards are those of their topic.
func classRows(all []api.Class, f *Filter, path string, now time.Time, guards []api.Guard) (rows []classRow) {
	most := mostPrints
	if len(all) == 1 {
		most = allPrints
	}
	for i := range all[:min(len(all), mostClasses)] {
		c := &all[i]
		row := classRow{groupRow: groupOf(wholeOf(c), f, path, now, guards)}
		if len(c.Groups) > 1 {
			for _, g := range c.Groups[:min(len(c.Groups), most)] {
				g.New = false // the class is, and its row says so
				row.Prints = append(row.Prints, groupOf(g, f, path, now, guards))
			}
			row.Count, row.More = len(c.Groups), len(c.Groups)-len(row.Prints)
		}
		rows = append(rows, row)
	}
	return rows
}

// wholeOf returns a class as one group; of several fingerprints without any.
func wholeOf(c *api.Class) api.Group {
	whole := c.Groups[0]
	if len(c.Groups) == 1 {
		return whole
	}
	whole.Fingerprint, whole.Open, whole.First, whole.Last, whole.New, whole.FailedAgain, whole.FirstSeen = "", c.Open, c.First, c.Last, c.New, c.FailedAgain, api.FirstSeen{}
	union := func(of func(*api.Group) []string) (names []string) {
		for i := range c.Groups {
			names = append(names, of(&c.Groups[i])...)
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	whole.Groups = union(func(g *api.Group) []string { return g.Groups })
	whole.Versions = union(func(g *api.Group) []string { return g.Versions })
	return whole
}

func groupOf(g api.Group, f *Filter, path string, now time.Time, guards []api.Guard) groupRow {
	one := *f
	one.Classes, one.Fingerprints, one.Cursor = []string{g.Class}, []string{g.Fingerprint}, ""
	row := groupRow{
		Group: g, ID: fmt.Sprintf("group-%s", idOf(g.Class, g.Fingerprint)),
		SampleLink: letterPath(path, g.Partition, g.Offset), First: momentOf(g.First, now), Last: momentOf(g.Last, now),
	}
	if g.Class != "" || g.Fingerprint != "" {
		row.Link = path + one.query() + "#letters"
	}
	if g.FailedAgain > 0 {
		row.Tags = append(row.Tags, tag{"FAILED AGAIN", number.Of(g.FailedAgain, "letter") + " of it came back and failed again", true})
	}
	if g.New {
		row.Tags = append(row.Tags, tag{"NEW", "the class was not seen before the last day", true})
	}
	if len(row.Tags) == 0 && now.Sub(g.Last) >= quietAfter && !isHeldBy(guards, g.Groups) {
		row.Tags = append(row.Tags, tag{"QUIET", "nothing failed so within the last hour", false})
	}
	return row
}
