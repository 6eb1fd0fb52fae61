//go:build few || (race && !full)

package cases

// Few reports whether tests run few of their cases: under the race detector
// without the tag full, or with the tag few.
const Few = true
