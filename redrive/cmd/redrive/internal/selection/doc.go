// Package selection turns the flags that choose dead letters into a filter. All verbs that choose
// letters have the same flags, so run takes what list shows.
package selection
