// Package headers is the format of the headers that siding writes to a record: where the record was
// first read, how often it was tried, how it failed last, and when it is due.
//
// # Format
//
// Values are text in UTF-8, numbers decimal, times Unix milliseconds, flags the word "true". A
// header without a value is omitted, except dlq-attempts, which is written even if it is 0. Each
// key occurs once: a hop replaces, and never appends.
//
//	key                       on           value
//	dlq-original-topic        retry, dlq   where the record was first read
//	dlq-original-topic-id     retry, dlq   as Kafka prints it: base64url, 22 characters
//	dlq-original-partition    retry, dlq   0 … 2,147,483,647
//	dlq-original-offset       retry, dlq   0 …
//	dlq-original-timestamp    retry, dlq   as read; may be negative
//	dlq-group                 retry, dlq   the group whose handler failed
//	dlq-attempts              retry, dlq   deliveries so far, 0 … 1,000,000
//	dlq-error-class           retry, dlq   [A-Za-z0-9_.*/-]{1,128}
//	dlq-error-fingerprint     retry, dlq   16 hex digits
//	dlq-error-msg             retry, dlq   at most 1 KiB
//	dlq-error-stack           dlq          at most 4 KiB
//	dlq-reason                dlq          see Reason
//	dlq-first-failed-at       retry, dlq   time
//	dlq-failed-at             retry, dlq   time
//	dlq-not-before            retry        due time
//	dlq-held                  retry        true
//	dlq-hops                  retry, dlq   copies written since the source or since redrive
//	dlq-history               retry, dlq   attempt:class:time,… oldest first, at most 2 KiB
//	dlq-traceparent           retry, dlq   W3C traceparent of the last attempt's span
//	dlq-consumer-version      retry, dlq   at most 256 bytes, as the next two
//	dlq-environment           retry, dlq
//	dlq-host                  retry, dlq
//	dlq-redrive-id            all          the run that redrove the record
//	dlq-redrive-count         all          how often it was redriven
//	dlq-redrive-from          all          topic/partition/offset of the dead letter
//	dlq-redrive-original      all          topic/partition/offset where the record was
//	                                       first read, if it was redriven to its source
//	dlq-value-omitted         dlq          true
//
// # Trust
//
// Exactly these keys are reserved; any other header is the user's, whatever its prefix. On a source
// topic the reserved headers have no effect and are removed ([Strip]). The redrive headers are the
// exception: [SourceRedrive] decides whether they count. dlq-redrive-original counts only together
// with them, and only if it names a record before its copy.
//
// On a retry topic a record is processed if [Parse] and [Meta.CheckRetry] accept it. Otherwise it
// is dead-lettered as found ([Malformed]). No header can make this package panic.
//
// The functions never change their arguments. Their results alias only the user's own headers.
package headers
