// Package hosted holds the files that a hosting service reads, in .github, to the repository: they
// run what .ci/run runs, and know each module.
package hosted
