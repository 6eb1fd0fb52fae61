// Package breaker decides when the records of a topic wait because too many of them fail. A
// [Breaker] is a circuit breaker, and a budget for retries that fail again. It knows neither Kafka
// nor a clock: each call says what the time is. A [Topic] has the lock and the timer, and tells the
// lanes of a topic.
//
// See DESIGN.md, "The breaker".
package breaker
