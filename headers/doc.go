// Package headers is the format of the headers that siding writes to a record. They say where the
// record was first read, how often it was tried, how it failed last, and when it is due.
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
//	dlq-first-failed-at       all          time, before all redrives
//	dlq-failed-at             retry, dlq   time
//	dlq-not-before            retry        due time
//	dlq-held                  retry        true
//	dlq-hops                  retry, dlq   copies written since the source or since redrive
//	dlq-history               all          at most 2 KiB, see below
//	dlq-traceparent           retry, dlq   W3C traceparent of the last attempt's span
//	dlq-consumer-version      retry, dlq   at most 256 bytes, as the next two
//	dlq-environment           retry, dlq
//	dlq-host                  retry, dlq
//	dlq-redrive-id            all          the run that redrove the record
//	dlq-redrive-count         all          how often it was redriven
//	dlq-redrive-from          all          topic/partition/offset of the dead letter
//	dlq-redrive-original      all          topic/partition/offset where the record was
//	                                       first read, if it was redriven to its source
//	dlq-redrive-at            all          time of the redrive
//	dlq-redrive-max-attempts  all          bound of the copy's deliveries, 1 … 1,000,000
//	dlq-value-omitted         dlq          true
//
// dlq-history has an entry for each failed call of the handler, oldest first. Its text is the
// format's number, 2, and then for each entry:
//
//	,attempt[.run]:class:time:verdict:message
//
// The run numbers the calls within one delivery, and is left out for the only call. The message is
// cut to 128 bytes; commas, percent signs and control characters are percent-encoded. If the
// entries do not fit, the oldest are left out. Format 1 was attempt:class:time,… without a mark; it
// is still read. A redriven record keeps its history, so numbers may begin at 1 more than once.
//
// # Trust
//
// Exactly these keys are reserved; any other header is the user's, whatever its prefix. On a source
// topic the reserved headers have no effect and are removed ([Strip]). The redrive headers are the
// exception: [ParseSource] decides whether they count. dlq-redrive-original, -at and -max-attempts
// count there only together with the other three, dlq-history and dlq-first-failed-at only together
// with dlq-redrive-at too. The consumer believes dlq-redrive-original only if it names a record
// before its copy. It takes a dlq-redrive-at before the record's own timestamp for that timestamp,
// and one in the future for now: otherwise a copy of an old letter would be too old for retries.
//
// On a retry topic a record is processed if [Parse] and [Meta.CheckRetry] accept it. Otherwise it
// is dead-lettered as found ([Malformed]). No header can make this package panic.
//
// The functions never change their arguments. Their results alias only the user's own headers.
package headers
