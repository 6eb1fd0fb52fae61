// Package browser tests the console of package serve in a real Chromium, over the embedded broker
// with an incident under way, and makes the pictures of the docs. `make browser` runs the tests,
// and installs Chromium where it is missing; without SIDING_BROWSER they are skipped. `make
// pictures` makes those of the docs. The command bench below it measures the console of a server
// with a million letters.
//
// A page that is new gets a line in the table of pages_test.go.
package browser
