// Package classify decides what a failure means: whether the record is worth another attempt, and
// what the fault is called.
//
// An error gets a [Verdict] (retry, terminal, discard) and a class. A class is a short, stable name
// that operators group by. A [Classifier] determines the two independently, each from the first of
// these sources that has one:
//
//  1. the handler's marks, outermost first: [Retryable], [Terminal], [Discard], [RetryAfter] for
//     the verdict, [As] for the class, [UnsupportedVersion] for both;
//  2. the first of [Classifier].Rules that matches;
//  3. the built-in rules below; inside an error that [Undecodable] marks only plain outages count,
//     and all else is terminal, with class decode;
//  4. [Classifier].Unknown for the verdict, and for the class the type name of the innermost named
//     error ("orders.SKUError"), or [ClassUnclassified] if there is none.
//
// Joined errors are searched depth first.
//
// # Built-in rules
//
// They inspect the methods of errors, the names and fields of their types, and the text of a few
// sentinels, so that no vendor is imported. "*" stands for any text, and the longest pattern
// counts. For "unknown", Classifier.Unknown decides.
//
//	class                                           verdict   error
//	timeout                                         retry     context.DeadlineExceeded
//	canceled                                        retry     context.Canceled
//	net.refused, net.reset, net.aborted, net.pipe   retry     errno;
//	net.unreachable, net.dns, net.timeout           retry     net.Error (Timeout, Temporary)
//	net.error                                       retry
//	net.eof                                         retry     io.EOF, io.ErrUnexpectedEOF
//	os.unavailable                                  retry     EAGAIN, EINTR, EMFILE, ENFILE,
//	                                                          ENOBUFS, ENOMEM
//	sql.connection                                  retry     driver.ErrBadConn, sql.ErrConnDone
//	sql.08*, sql.40*, sql.53*, sql.57P*, sql.58*    retry     SQLState() string
//	sql.25006, sql.55P03, sql.57014                 retry
//	sql.22*, sql.23*, sql.42*                       terminal
//	sql.*                                           unknown
//	mysql.1021, mysql.1037, mysql.1040, mysql.1041  retry     *mysql.MySQLError
//	mysql.1053, mysql.1152, mysql.1158, mysql.1159  retry
//	mysql.1160, mysql.1161, mysql.1184, mysql.1203  retry
//	mysql.1205, mysql.1213, mysql.1226, mysql.1290  retry
//	mysql.1317, mysql.1637, mysql.1792, mysql.1836  retry
//	mysql.2006, mysql.2013, mysql.3024, mysql.3101  retry
//	mysql.3572, mysql.4031                          retry
//	mysql.*                                         that of the SQLSTATE
//	http.408, http.425, http.429, http.5*           retry     StatusCode, HTTPStatusCode,
//	                                                          HTTPCode() int
//	http.4*, http.501, http.505                     terminal
//	http.500                                        unknown
//	grpc.Canceled, grpc.DeadlineExceeded            retry     GRPCStatus() *status.Status
//	grpc.ResourceExhausted, grpc.Aborted            retry
//	grpc.Unavailable                                retry
//	grpc.Unknown, grpc.Internal, grpc.Code_*        unknown
//	grpc.*                                          terminal
//	aws.*                                           retry     ErrorCode() string
//	redis.*                                         retry     RedisError(), redis.ErrPoolTimeout
//	kafka.*                                         retry if retriable, else unknown  *kerr.Error
//	kafka.produce                                   retry     kgo.ErrRecordTimeout
//	decode                                          terminal  the standard library's syntax errors
//	panic.*                                         terminal  *PanicError
//
// Only some errors of AWS and Redis have a class: AWS codes that the SDK retries by itself, a Redis
// server that is not ready or full, and an exhausted pool of go-redis. The listed numbers of MySQL
// are temporary; its other numbers have the verdict of their SQLSTATE. HTTP status 500 and gRPC's
// Unknown and Internal are unknown, since they carry no meaning.
//
// io.EOF and io.ErrUnexpectedEOF mean that a connection ended. A decoder returns the same errors
// for a truncated payload, and must mark them by [Undecodable], as consumer.Decode does.
//
// Any error may have a method RetryAfter() time.Duration: the least wait if the verdict is retry.
// Among several errors in a chain the outermost counts, except that a bare net.Error and an AWS
// error of status 400 yield to more specific errors inside them.
//
// # Foreign errors
//
// Error values are user code: their methods may panic or contradict each other. A method that
// panics counts as missing, and at most a few hundred errors of a chain are visited. So classifying
// an error never ends the process.
package classify
