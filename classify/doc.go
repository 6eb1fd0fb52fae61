// Package classify says what a failure means: whether the record is worth
// another try, and what the fault is called.
//
// An error gets a [Verdict] (retry, terminal, discard) and a class, a short and
// stable name with few values that operators group by. A [Classifier] resolves
// the two independently of each other, each from the first of these sources
// that has one:
//
//  1. the handler's own word, outermost first: [Retryable], [Terminal],
//     [Discard], [RetryAfter] for the verdict, [As] for the class;
//  2. the first of [Classifier].Rules that matches;
//  3. the built-in rules below;
//  4. [Classifier].Unknown for the verdict, and for the class the type name of
//     the innermost named error ("orders.SKUError"), or [ClassUnclassified]
//     where there is none.
//
// Joined errors are searched depth first.
//
// # Built-in rules
//
// They go by the methods that errors have, so that no vendor is imported:
//
//	error                                       class              verdict
//	context.DeadlineExceeded                    timeout            retry
//	context.Canceled                            canceled           retry
//	ECONNREFUSED, ECONNRESET, ECONNABORTED      net.refused, .reset, .aborted
//	                                                               retry
//	EPIPE, ETIMEDOUT                            net.pipe, net.timeout
//	                                                               retry
//	EHOSTUNREACH, ENETUNREACH                   net.unreachable    retry
//	io.ErrUnexpectedEOF                         net.eof            retry
//	net.Error (Timeout and Temporary)           net.timeout, net.dns, net.error
//	                                                               retry
//	StatusCode, HTTPStatusCode, HTTPCode() int  http.503 …         5xx, 408, 425, 429
//	                                                               retry, other 4xx
//	                                                               terminal
//	SQLState() string                           sql.40001 …        08, 40, 53, 57P
//	                                                               retry; 22, 23, 42
//	                                                               terminal; others
//	                                                               have none
//	GRPCStatus() *status.Status                 grpc.Unavailable … see below
//	syntax errors of encoding/json, xml, csv,   decode             terminal
//	hex, base32, base64, asn1, of strconv and
//	time.Parse
//	*PanicError                                 panic.<type>       terminal
//
// gRPC's Canceled, DeadlineExceeded, ResourceExhausted, Aborted and Unavailable
// are retried; Unknown and Internal are left to Classifier.Unknown, since they
// say nothing; the others are terminal. An error of any kind may have a method
// RetryAfter() time.Duration, the least wait where the verdict is retry.
// Among several errors in a chain the outermost wins, except that a bare
// net.Error yields to anything more specific inside it.
//
// # Foreign errors
//
// Error values are user code: their methods may panic or contradict themselves.
// A method that panics counts as one that is not there, and chains are followed
// for a few hundred errors at most, so that classifying never takes the process
// down.
package classify
