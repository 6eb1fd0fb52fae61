package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Letters is a number of letters in words.
func Letters(n int64) string {
	if n == 1 {
		return "1 letter"
	}
	return fmt.Sprintf("%d letters", n)
}

// CountsText formats counts by name.
func CountsText[K ~string](of map[K]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, Letters(of[name])+": "+string(name))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}
