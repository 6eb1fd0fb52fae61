// Package classify says what a failure means: whether the record is worth
// another try, and what the fault is called.
//
// An error gets a [Verdict] (retry, terminal, discard) and a class, a short and
// stable name with few values that operators group by. A [Classifier] resolves
// the two independently of each other, each from the first of these sources
// that has one:
//
//  1. the handler's own word, outermost first: [Retryable], [Terminal],
//     [Discard], [RetryAfter] for the verdict, [As] for the class,
//     [UnsupportedVersion] for both;
//  2. the first of [Classifier].Rules that matches;
//  3. the built-in rules below, of which those that are plainly an outage alone count inside of what
//     [Undecodable] marks; the rest of that is terminal, with class decode;
//  4. [Classifier].Unknown for the verdict, and for the class the type name of
//     the innermost named error ("orders.SKUError"), or [ClassUnclassified]
//     where there is none.
//
// Joined errors are searched depth first.
//
// # Built-in rules
//
// They go by the methods that errors have, by their types' names and fields, and for a few sentinels
// by their text, so that no vendor is imported. "*" stands for anything, and the longest pattern
// counts; unknown is left to Classifier.Unknown.
//
//	class                                                         verdict     error
//	timeout                                                       retry       context.DeadlineExceeded
//	canceled                                                      retry       context.Canceled
//	net.refused, net.reset, net.aborted, net.pipe                 retry       errno; net.Error (Timeout and Temporary)
//	net.unreachable, net.dns, net.timeout, net.error              retry
//	net.eof                                                       retry       io.EOF, io.ErrUnexpectedEOF
//	os.unavailable                                                retry       EAGAIN, EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM
//	sql.connection                                                retry       driver.ErrBadConn, sql.ErrConnDone
//	sql.08*, sql.40*, sql.53*, sql.57P*, sql.58*, sql.25006       retry       SQLState() string
//	sql.55P03, sql.57014                                          retry
//	sql.22*, sql.23*, sql.42*                                     terminal
//	sql.*                                                         unknown
//	mysql.1021, mysql.1037, mysql.1040, mysql.1041, mysql.1053    retry       *mysql.MySQLError
//	mysql.1152, mysql.1158, mysql.1159, mysql.1160, mysql.1161    retry
//	mysql.1184, mysql.1203, mysql.1205, mysql.1213, mysql.1226    retry
//	mysql.1290, mysql.1317, mysql.1637, mysql.1792, mysql.1836    retry
//	mysql.2006, mysql.2013, mysql.3024, mysql.3101, mysql.3572    retry
//	mysql.4031                                                    retry
//	mysql.*                                                       that of the SQLSTATE
//	http.408, http.425, http.429, http.5*                         retry       StatusCode, HTTPStatusCode, HTTPCode() int
//	http.4*, http.501, http.505                                   terminal
//	http.500                                                      unknown
//	grpc.Canceled, grpc.DeadlineExceeded                          retry       GRPCStatus() *status.Status
//	grpc.ResourceExhausted, grpc.Aborted, grpc.Unavailable        retry
//	grpc.Unknown, grpc.Internal, grpc.Code_*                      unknown
//	grpc.*                                                        terminal
//	aws.*                                                         retry       ErrorCode() string
//	redis.*                                                       retry       RedisError(), redis.ErrPoolTimeout
//	kafka.*                                                       retry if retriable, else unknown  *kerr.Error
//	kafka.produce                                                 retry       kgo.ErrRecordTimeout
//	decode                                                        terminal    syntax errors of the standard library
//	panic.*                                                       terminal    *PanicError
//
// A code of AWS that its SDK tries again by itself, an answer of Redis that it is not ready or full,
// and a pool of go-redis that is used up have a class; their other errors do not. MySQL's numbers
// that are listed pass by themselves; the others have the verdict of their SQLSTATE. An HTTP status
// of 500 and gRPC's Unknown and Internal are unknown, since they say nothing.
//
// io.EOF and io.ErrUnexpectedEOF are a connection's that ended. A decoder returns the same for a
// payload that ends too early, which is to be told by [Undecodable]; consumer.Decode does.
//
// An error of any kind may have a method RetryAfter() time.Duration, the least wait where the
// verdict is retry. Among several errors in a chain the outermost wins, except that a bare net.Error
// and an AWS error of status 400 yield to anything more specific inside them.
//
// # Foreign errors
//
// Error values are user code: their methods may panic or contradict themselves.
// A method that panics counts as one that is not there, and chains are followed
// for a few hundred errors at most, so that classifying never takes the process
// down.
package classify
