package main

import (
	"slices"
	"testing"
)

// Users get these modules of siding, the root first since the others require it. A module that is
// added is a decision: every release tags it from then on.
func TestPublished_ModulesOfSiding(t *testing.T) {
	t.Parallel()
	modules, err := readModules("../..")
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, m := range published(modules) {
		tags = append(tags, m.tag("v0.1.0"))
	}
	if want := []string{"v0.1.0", "integration/v0.1.0", "serve/v0.1.0", "redrive/cmd/redrive/v0.1.0"}; !slices.Equal(tags, want) {
		t.Errorf("a release has the tags %v, want %v", tags, want)
	}
}
