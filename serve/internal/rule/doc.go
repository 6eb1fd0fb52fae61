// Package rule decides when letters are redriven by themselves, and when that stops.
//
// A rule waits until its classes have not failed for a while, and only then redrives. A run that
// aborts opens the rule's circuit breaker: nothing more is redriven until a wait is over, which
// doubles each time. Then one letter is redriven alone. If it succeeds, the circuit closes.
package rule
