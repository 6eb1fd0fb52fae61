package commitmark

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestGuard_IsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := Guard{
			State: rapid.SampledFrom([]State{0, Strained, Held}).Draw(t, "state"),
			Since: time.Unix(rapid.Int64Range(0, 1<<37-1).Draw(t, "since"), 0),
			Class: rapid.StringN(0, 12, 100).Draw(t, "class"),
		}
		field := g.Field()
		if len(field) > MostField || strings.ContainsFunc(field, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("%d characters, or not plain ASCII: %q", len(field), field)
		}
		got := ParseGuard(Mark+" 1 f=2s p=4fzyo82"+field+" b=AQ", 100)
		if g.State == 0 {
			g = Guard{}
		}
		if !got.Since.Equal(g.Since) || got.State != g.State || !strings.HasPrefix(g.Class, got.Class) || len(g.Class) <= mostClass && got.Class != g.Class {
			t.Fatalf("got %v, want %v", got, g)
		}
	})
}

func TestGuard_WhatIsBrokenSaysNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "siding", "other h=hs1.YQ", "siding 1 h=", "siding 1 h=h", "siding 1 h=x1.YQ", "siding 1 h=h-1.YQ", "siding 1 h=h1.Y", "siding 1 h=h1.***",
		"siding 1 h=hzzzzzzzzzzzz.YQ", "siding 1 h=he13wu1of.YQ", "siding 1 h=h1." + strings.Repeat("YWFh", 9), "siding 1 hh=h1.YQ",
		// of another offset
		"siding 1 f=1s h=h1.YQ", "siding 1 f=2t h=h1.YQ", "siding 1 f= h=h1.YQ", "siding 1 h=h1.YQ f=1s",
	} {
		if g := ParseGuard(text, 100); g != (Guard{}) {
			t.Errorf("%q is read as %v", text, g)
		}
	}
	if g := ParseGuard("siding 1 f=2s h=h2. z=new", 100); g.State != Held || g.Since.Unix() != 2 {
		t.Errorf("got %v", g)
	}
}

func FuzzParseGuard(f *testing.F) {
	f.Add("siding 1 f=2s h=h1a2b3c.Y2xhc3M b=AQ")
	f.Fuzz(func(t *testing.T, text string) {
		if g := ParseGuard(text, 100); len(g.Field()) > MostField || len(g.Class) > mostClass {
			t.Fatalf("%q is read as %v", text, g)
		}
	})
}
