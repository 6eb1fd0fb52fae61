package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// letters is a number of letters in words.
func letters(n int64) string {
	if n == 1 {
		return "1 letter"
	}
	return fmt.Sprintf("%d letters", n)
}

// countsText formats counts by name.
func countsText[K ~string](of map[K]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, letters(of[name])+": "+string(name))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}
