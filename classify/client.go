package classify

import (
	"reflect"
	"strconv"
	"strings"
)

// These clients' errors have no method that identifies them. An error is recognized by the name of
// its type together with the fields that are read from it, or by its text if it is a bare
// errors.New. The module in internal/drivers tests all of it with the clients themselves.

const classConnection = "sql.connection"

// ofClient decides by the client that err comes from.
func ofClient(err error, s *shape) opinion {
	switch {
	case s.has&isMySQL != 0:
		return ofMySQL(fieldsOf(err))
	case s.has&isKafka != 0:
		return ofKafka(fieldsOf(err))
	case s.has&isRedis != 0:
		return ofRedis(err.Error())
	}
	return plain[err.Error()]
}

// plain are sentinel errors that only their text identifies.
var plain = map[string]opinion{
	"invalid connection": withVerdict(classConnection, VerdictRetry), // go-sql-driver, in a query
	"conn closed":        withVerdict(classConnection, VerdictRetry), // pgx

	"redis: connection pool timeout":          withVerdict("redis.pool", VerdictRetry),
	"redis: connection pool exhausted":        withVerdict("redis.pool", VerdictRetry),
	"redis: connection pool has no free turn": withVerdict("redis.pool", VerdictRetry),

	// From franz-go, in a handler that writes to Kafka itself.
	"records have timed out before they were able to be produced":    withVerdict("kafka.produce", VerdictRetry),
	"record failed after being retried too many times":               withVerdict("kafka.produce", VerdictRetry),
	"the maximum amount of records are buffered, cannot buffer more": withVerdict("kafka.produce", VerdictRetry),
}

// fieldsOf returns the struct that err is or points to.
func fieldsOf(err error) reflect.Value {
	v := reflect.ValueOf(err)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

func hasField(t reflect.Type, name string, kind reflect.Kind) bool {
	f, ok := t.FieldByName(name)
	return ok && f.Type.Kind() == kind
}

// isMySQLError recognizes go-sql-driver's error. Its text is unreliable: it changed when the
// SQLSTATE was added.
func isMySQLError(t reflect.Type) bool {
	return t.String() == "mysql.MySQLError" && t.Kind() == reflect.Struct && hasField(t, "Number", reflect.Uint16)
}

// isKafkaError recognizes franz-go's error for a broker's answer.
func isKafkaError(t reflect.Type) bool {
	return t.String() == "kerr.Error" && t.Kind() == reflect.Struct && hasField(t, "Retriable", reflect.Bool) && hasField(t, "Message", reflect.String)
}

// ofMySQL decides by the error's number first. MySQL has few SQLSTATEs of its own, and uses HY000
// for many temporary errors. For other numbers the SQLSTATE's class decides.
func ofMySQL(fields reflect.Value) opinion {
	number := fields.FieldByName("Number").Uint()
	o := opinion{class: "mysql." + strconv.FormatUint(number, 10)}
	if mysqlRetry[number] {
		o.verdict, o.decided = VerdictRetry, true
		return o
	}
	if state := fields.FieldByName("SQLState"); state.IsValid() && state.Kind() == reflect.Array && state.Len() == 5 {
		var b [5]byte
		reflect.Copy(reflect.ValueOf(b[:]), state)
		o.verdict, o.decided = verdictOfSQL(string(b[:]))
	}
	return o
}

// mysqlRetry are the numbers of temporary errors, from MySQL's error message reference.
var mysqlRetry = map[uint64]bool{
	1021: true, // disk full
	1037: true, // out of memory
	1040: true, // too many connections
	1041: true, // out of resources
	1053: true, // server shutdown in progress
	1152: true, // connection aborted
	1158: true, // read of a packet failed
	1159: true, // read of a packet timed out
	1160: true, // write of a packet failed
	1161: true, // write of a packet timed out
	1184: true, // connection aborted
	1203: true, // too many connections of the user
	1205: true, // lock wait timeout
	1213: true, // deadlock
	1226: true, // the user's limit of resources
	1290: true, // the server runs with --read-only, after a failover
	1317: true, // query interrupted
	1637: true, // too many transactions
	1792: true, // read-only transaction
	1836: true, // read-only mode
	2006: true, // server has gone away
	2013: true, // connection lost in a query
	3024: true, // maximum execution time exceeded
	3101: true, // rolled back by group replication
	3572: true, // lock not available at once
	4031: true, // disconnected for inactivity
}

// ofKafka follows the protocol's definition of retriable errors.
func ofKafka(fields reflect.Value) opinion {
	o := opinion{class: CleanClass("kafka." + fields.FieldByName("Message").String())}
	if fields.FieldByName("Retriable").Bool() {
		o.verdict, o.decided = VerdictRetry, true
	}
	return o
}

// ofRedis decides by the first word of the server's answer. Other words report a wrong command;
// those errors are classified by their type.
func ofRedis(text string) opinion {
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY", "OOM":
		return withVerdict("redis."+word, VerdictRetry)
	}
	if text == "ERR max number of clients reached" {
		return withVerdict("redis.MAXCLIENTS", VerdictRetry)
	}
	return opinion{}
}

// ofAWS recognizes the codes that AWS uses for throttling, mostly with HTTP status 400. They are
// the codes that its SDK retries by itself (retry.DefaultThrottleErrorCodes,
// DefaultRetryableErrorCodes).
func ofAWS(code string) opinion {
	switch code {
	case "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "TooManyRequestsException",
		"ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded", "BandwidthLimitExceeded",
		"LimitExceededException", "RequestThrottled", "SlowDown", "PriorRequestNotComplete", "EC2ThrottledException",
		"RequestTimeout", "RequestTimeoutException":
		return withVerdict("aws."+code, VerdictRetry)
	}
	return opinion{}
}

// IsUniqueViolation reports whether err says that a row with the key exists already. It recognizes
// SQLSTATE 23505 (PostgreSQL, by pgx and lib/pq) and MySQL's numbers 1062 and 1586 (by
// go-sql-driver). If the key is the record's idempotency key, an earlier delivery did the work:
//
//	if classify.IsUniqueViolation(err) {
//		return nil
//	}
//
// Any other unique violation is a failure, and terminal. So insert the idempotency key by a
// statement of its own, first in the transaction, and check the error of that statement only.
func IsUniqueViolation(err error) bool {
	left := maxErrors
	return anyIn(err, &left, func(err error) bool {
		s := shapeOf(err)
		switch {
		case s.has&hasSQLState != 0:
			return err.(sqlState).SQLState() == "23505"
		case s.has&isMySQL != 0:
			number := fieldsOf(err).FieldByName("Number").Uint()
			return number == 1062 || number == 1586
		}
		return false
	})
}
