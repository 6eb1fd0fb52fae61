//go:build !full && !all

package cases

// Full reports whether tests run all combinations of their cases: with the
// tag full or all.
const Full = false
