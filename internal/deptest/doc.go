// Package deptest checks the directions of imports, and pages of the documentation against the
// code; it has tests only. It reads the source of the whole tree with all nested modules, so a rule
// holds under any build tag.
package deptest
