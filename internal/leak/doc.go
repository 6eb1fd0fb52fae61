// Package leak finds parts of records in what a program writes about them: its log at any level,
// its spans, its metrics, and whatever else a test shows it.
//
// A [Finder] has a mark, a random text. A test puts [Finder.Mark] into keys, values and headers of
// its records, gives the finder's logger and providers to the program, and asks [Finder.Found] at
// the end. The providers implement OpenTelemetry's API without an SDK, so they also get attributes
// that a view or a sampler would drop. Everything may be called from several goroutines.
package leak
