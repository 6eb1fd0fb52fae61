package rule

import (
	"strings"
	"testing"
)

// A file of rules is refused with its name and the line, or its rules can be applied.
func FuzzParse_RefusesWithTheLine(f *testing.F) {
	for _, text := range []string{
		"", "rules:", "rules: []", "rules: [{name: a, topics: '*', classes: [x], times: [Mon-Fri 08:00-18:00], zone: Europe/Berlin}]", "rules: [{name: a}]", "\t", "rules: &a [*a]", "{", "rules: [{rate: .nan}]",
		"rules: [{name: a, topics: '*', classes: [x], where: value.n > 1, headers: [a=b], keys: [''], since: 2026-11-01T00:00:00Z}]", "rules: [{classes: [x], where: '', headers: []}]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse("rules.yaml", []byte(text))
		switch {
		case err != nil && (all != nil || !strings.HasPrefix(err.Error(), "rules.yaml")):
			t.Errorf("%q: %d rules, %v", text, len(all), err)
		case err == nil:
			for i := range all {
				if all[i].Name == "" || all[i].zone == nil || all[i].CoolDown < 0 || !(all[i].Rate > 0) {
					t.Errorf("%q has the rule %+v", text, all[i])
				}
			}
		}
	})
}
