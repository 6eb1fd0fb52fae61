package console

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/selection"
)

// A column holds what differs. What all letters have in common is one line, also that it is not
// known; what was not read is not called common.
func TestNewLetterList_SaysOnceWhatAllHaveInCommon(t *testing.T) {
	t.Parallel()
	one := api.Letter{Class: "tax.TableMiss", Reason: "exhausted", Group: "billing", Version: "2.3.1"}
	glance := operate.Glance{Message: "no rate", Attempts: 3, Key: api.Bytes{Text: new(string)}}
	for name, test := range map[string]struct {
		other   api.Letter
		glance  *operate.Glance // of the other
		columns string
		common  []string
	}{
		"all": {one, &glance, "", []string{"tax.TableMiss", "“no rate”", "its attempts were used up", "3 attempts", "key empty", "group billing", "version 2.3.1", "open"}},
		"messages": {
			one, &operate.Glance{Message: "no tax", Attempts: 4, Key: api.Bytes{Base64: []byte{7}}}, "says key attempts",
			[]string{"tax.TableMiss", "its attempts were used up", "group billing", "version 2.3.1", "open"},
		},
		"kinds":  {api.Letter{Class: "a", Reason: "terminal", Group: "mail", Version: "2", State: "failed"}, &glance, "class reason group version state", []string{"“no rate”", "3 attempts", "key empty"}},
		"unread": {one, nil, "says key attempts", []string{"tax.TableMiss", "its attempts were used up", "group billing", "version 2.3.1", "open"}},
	} {
		second := test.other
		second.Offset = 1
		glances := map[selection.Place]operate.Glance{{}: glance}
		if test.glance != nil {
			glances[selection.Place{Offset: 1}] = *test.glance
		}
		l := newLetterList([]api.Letter{one, second}, glances, errors.New("why"), true, &Filter{}, "/t", time.Now())
		if got := columnsOf(&l); got != test.columns || !slices.Equal(l.Common, test.common) {
			t.Errorf("%s: the columns are %q, and common is %q; want %q and %q", name, got, l.Common, test.columns, test.common)
		}
		if (l.Unread != "") != (test.glance == nil) {
			t.Errorf("%s: unread is %q", name, l.Unread)
		}
	}
	alone := newLetterList([]api.Letter{{}}, map[selection.Place]operate.Glance{{}: glance}, nil, false, &Filter{}, "/t", time.Now())
	if got, want := columnsOf(&alone), "says attempts"; got != want || !slices.Equal(alone.Common, []string{"no class", "reason unknown", "group unknown", "version unknown", "open"}) {
		t.Errorf("one letter of an unknown kind: the columns are %q, and common is %q", got, alone.Common)
	}
}

func columnsOf(l *letterList) (names string) {
	for _, c := range []struct {
		name string
		is   bool
	}{{"says", l.Says}, {"key", l.Key}, {"attempts", l.Attempts}, {"class", l.Class}, {"reason", l.Reason}, {"group", l.Group}, {"version", l.Version}, {"state", l.States}} {
		if c.is && names != "" {
			names += " "
		}
		if c.is {
			names += c.name
		}
	}
	return names
}

func TestKeyText_ShowsTheBeginning(t *testing.T) {
	t.Parallel()
	empty, text := "", "order-1"
	for want, b := range map[string]api.Bytes{
		"none": {}, "empty": {Text: &empty}, "order-1": {Text: &text, Size: 7}, "order-1…": {Text: &text, Size: 9, Cut: true}, "ff00": {Base64: []byte{255, 0}, Size: 2},
	} {
		if got := keyText(b); got != want {
			t.Errorf("the key is %q, want %q", got, want)
		}
	}
}
