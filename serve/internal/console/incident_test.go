package console

import (
	"slices"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/api"
)

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
