//go:build race && !full

package cases

// Few reports whether tests run few of their cases: under the race detector, without the tag full.
const Few = true
