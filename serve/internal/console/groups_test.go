package console

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// A class has its total, and below it the fingerprints if there are several: the largest few, or
// all that fit on a page of one class. A class with one fingerprint is one line.
func TestClassRows_FoldFingerprints(t *testing.T) {
	t.Parallel()
	at := time.Now()
	groups := []api.Group{{Class: "b", Fingerprint: "f0", Open: 90, First: at, Last: at}}
	for i := range int64(7) {
		groups = append(groups, api.Group{
			Class: "a", Fingerprint: fmt.Sprint("f", i), Open: 20 - i, First: at.Add(time.Duration(-i) * time.Hour), Last: at, New: true,
			Groups: []string{"billing"}, Versions: []string{fmt.Sprint(i % 2)}, FirstSeen: api.FirstSeen{Frame: "tax.Of, tax.go:7"},
		})
	}
	rows := classRows(operate.FoldGroups(groups), &Filter{}, "/t", at, nil)
	if len(rows) != 2 || rows[0].Class != "a" || rows[0].Open != 119 || rows[1].Open != 90 || len(rows[1].Prints) != 0 || rows[1].Fingerprint != "f0" {
		t.Fatalf("the rows are %+v", rows)
	}
	a := rows[0]
	if a.Link != "/t?class=a#letters" || !slices.Equal(a.Versions, []string{"0", "1"}) || !a.Group.First.Equal(at.Add(-6*time.Hour)) || a.FirstSeen.Frame != "" || len(a.Tags) != 1 {
		t.Errorf("the class is %+v", a)
	}
	if len(a.Prints) != mostPrints || a.Count != 7 || a.More != 7-mostPrints || a.Prints[1].Link != "/t?class=a&fingerprint=f1#letters" || a.Prints[1].FirstSeen.Frame == "" || len(a.Prints[0].Tags) != 0 {
		t.Errorf("its fingerprints are %+v, and %d more", a.Prints, a.More)
	}
	if alone := classRows(operate.FoldGroups(groups[1:]), &Filter{}, "/t", at, nil); len(alone) != 1 || len(alone[0].Prints) != 7 || alone[0].More != 0 {
		t.Errorf("the one class of a page is %+v", alone)
	}
}

// The link of a group shows its letters and no others. No filter selects letters without a class
// and a fingerprint: the link was to all letters, as if they were the group's.
func TestGroupOf_LinksToItsLettersAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		class, fingerprint, want string
	}{
		{"a", "f", "/t?class=a&fingerprint=f#letters"},
		{"", "f", "/t?fingerprint=f#letters"},
		{"a", "", "/t?class=a#letters"},
		{"", "", ""},
	} {
		if got := groupOf(api.Group{Class: test.class, Fingerprint: test.fingerprint}, &Filter{}, "/t", time.Now(), nil).Link; got != test.want {
			t.Errorf("the group of class %q and fingerprint %q links to %q, want %q", test.class, test.fingerprint, got, test.want)
		}
	}
}

// A group whose letters stop since their consumer group holds the source is not quiet.
func TestGroupOf_IsNotQuietWhileItsSourceIsHeld(t *testing.T) {
	t.Parallel()
	now := time.Now()
	guards := []api.Guard{{Group: "mail", State: "strained"}}
	for _, test := range []struct {
		groups []string
		quiet  bool
	}{{[]string{"billing"}, true}, {[]string{"billing", "mail"}, false}, {nil, true}} {
		row := groupOf(api.Group{Class: "a", Last: now.Add(-2 * time.Hour), Groups: test.groups}, &Filter{}, "/t", now, guards)
		if quiet := slices.ContainsFunc(row.Tags, func(is tag) bool { return is.Text == "QUIET" }); quiet != test.quiet {
			t.Errorf("letters of %q are quiet: %v, want %v", test.groups, quiet, test.quiet)
		}
	}
}
