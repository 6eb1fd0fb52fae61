package main

import "testing"

func TestPurpose_IsTheFirstSentenceWithoutItsName(t *testing.T) {
	t.Parallel()
	names := []string{"lane", "letter"}
	for comment, want := range map[string]string{
		"lane is the unit of order. It drains.": "The unit of order",
		"lane holds\nrecords.\n\nMore.":         "Holds records",
		"A letter is a record.":                 "A record",
		"A letter that is new.":                 "A letter that is new",
		"Package tier holds a [tier.Lane].":     "Holds a tier.Lane",
		"Command house measures code:":          "Measures code",
		"The lanes of a process.":               "The lanes of a process",
	} {
		if got := purpose(comment, names); got != want {
			t.Errorf("%q has the purpose %q, want %q", comment, got, want)
		}
	}
}
