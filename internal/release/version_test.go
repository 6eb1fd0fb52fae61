package main

import "testing"

// A trial never has the version of a release that exists, also where only the changelog knows it.
func TestVersion_NextComesAfterAll(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		released []string
		want     string
	}{
		{nil, "v0.1.0"},
		{[]string{"nightly", "kit/v0.9.0"}, "v0.1.0"},
		{[]string{"v0.2.0", "v0.10.1", "v0.9.0"}, "v0.11.0"},
		{[]string{"v1.0.0-rc.1", "v0.9.0"}, "v1.1.0"},
		{changelog("## [Unreleased]\n\n## [0.3.1] - 2027-01-01\n\n## [0.3.0] - 2026-12-01\n").released(), "v0.4.0"},
	} {
		if got := nextVersion(tt.released); got != tt.want {
			t.Errorf("after %v comes %s, want %s", tt.released, got, tt.want)
		}
		if err := checkVersion(nextVersion(tt.released), tt.released); err != nil {
			t.Errorf("after %v: %v", tt.released, err)
		}
	}
}
