// Package headers is the format of the headers that siding writes to a record. They say where the
// record was first read, how often it was tried, how it failed last, and when it is due.
//
// # Format
//
// Values are text in UTF-8, numbers decimal, times Unix milliseconds, flags the word "true". A
// header without a value is omitted, except dlq-attempts, which is written even if it is 0. Each
// key occurs once: a hop replaces, and never appends.
//
//	key                     on           value
//	dlq-original-topic      retry, dlq   where the record was first read
//	dlq-original-partition  retry, dlq   0 … 2,147,483,647
//	dlq-original-offset     retry, dlq   0 …
//	dlq-group               retry, dlq   the group whose handler failed
//	dlq-attempts            retry, dlq   deliveries so far, 0 … 1,000,000
//	dlq-error-class         retry, dlq   [A-Za-z0-9_.*/-]{1,128}
//	dlq-error-msg           retry, dlq   at most 1 KiB
//	dlq-error-stack         dlq          at most 4 KiB
//	dlq-reason              dlq          see Reason
//	dlq-failed-at           retry, dlq   time
//	dlq-not-before          retry        due time
//	dlq-meta                all          fields
//
// A field is name=value; and a value has no semicolon: in a text, semicolons, percent signs and
// all that is no printable ASCII are percent-encoded. A version keeps the fields that it does not
// know, at most 4 KiB of them, and passes them on.
//
//	field    on           value
//	ts       retry, dlq   the original timestamp; may be negative
//	id       retry, dlq   the original topic's id as Kafka prints it: base64url, 22 characters
//	fp       retry, dlq   the error's fingerprint, 16 hex digits
//	hops     retry, dlq   copies written since the source or since redrive; left out if
//	                      they are as many as dlq-attempts
//	first    all          time of the first failure, before all redrives; left out if it is
//	                      dlq-failed-at, and "-" if it is not known
//	trace    retry, dlq   W3C traceparent of the last attempt's span, at most 256 bytes, as
//	                      the next three
//	version  retry, dlq   of the consumer
//	env      retry, dlq   its environment
//	host     retry, dlq
//	held     retry        true
//	omitted  dlq          true: the value did not fit
//	history  all          at most 2 KiB, see below
//	run      all          the run that redrove the record
//	runs     all          how often it was redriven
//	from     all          topic/partition/offset of the dead letter
//	origin   all          topic/partition/offset where the record was first read, if it was
//	                      redriven to its source
//	max      all          bound of the copy's deliveries, 1 … 1,000,000
//	sent     all          time of the redrive
//
// The history has an entry for each failed call of the handler, oldest first. Its text is the
// format's number, 2, and then for each entry:
//
//	,attempt[.run]:class:time:verdict:message
//
// The run numbers the calls within one delivery, and is left out for the only call. The message is
// cut to 128 bytes; commas are encoded besides. If the entries do not fit, the oldest are left out.
// A redriven record keeps its history, so numbers may begin at 1 more than once.
//
// Until dlq-meta came, each field had a header of its own: host was dlq-host. [Parse] reads these
// too, and a history without the 2, whose entries were attempt:class:time. [Values] iterates over
// a record's headers and fields by these keys.
//
// # Trust
//
// Exactly these keys are reserved; any other header is the user's, whatever its prefix. On a source
// topic the reserved headers have no effect and are removed ([Strip]). The fields of a redrive are
// the exception: [ParseSource] decides whether they count. There origin, sent and max count only
// together with run, runs and from, and history and first only together with sent too. The consumer
// believes an origin only if it names a record before its copy. It takes a time of the redrive
// before the record's own timestamp for that timestamp, and one in the future for now: otherwise a
// copy of an old letter would be too old for retries.
//
// On a retry topic a record is processed if [Parse] and [Meta.CheckRetry] accept it. Otherwise it
// is dead-lettered as found ([Malformed]). No header can make this package panic.
//
// The functions never change their arguments. Their results alias only the user's own headers.
package headers
