package consumer

import (
	"runtime/debug"
	"testing"
)

// A program built from a checkout said that it had version v0.0.0.
func TestVersionAmong_ReplacedModules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		siding *debug.Module
		want   string
	}{
		{&debug.Module{Path: modulePath, Version: "v1.2.3"}, "v1.2.3"},
		{&debug.Module{Path: modulePath, Version: "(devel)"}, "devel"},
		{&debug.Module{Path: modulePath, Version: "v0.0.0", Replace: &debug.Module{Path: "../siding"}}, "devel"},
		{&debug.Module{Path: modulePath, Version: "v1.2.3", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.4"}}, "v1.2.4"},
		{&debug.Module{Path: "example.com/other", Version: "v9.9.9"}, "devel"},
	} {
		if got := versionAmong([]*debug.Module{{Path: "example.com/first", Version: "v5.0.0"}, tt.siding}); got != tt.want {
			t.Errorf("of %+v: %q, want %q", *tt.siding, got, tt.want)
		}
	}
}
