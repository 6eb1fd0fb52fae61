// Package selection makes the flags that choose dead letters into a filter. All verbs that choose have the same flags,
// so what list shows is what run takes.
package selection
