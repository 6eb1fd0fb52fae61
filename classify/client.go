package classify

import (
	"reflect"
	"strconv"
	"strings"
)

// Clients whose errors have no method that says what they are. An error is known by the name of its
// type together with the fields that it is read from, or by its text where it is a bare errors.New.
// The module in internal/drivers holds all of it to the clients themselves.

const (
	classEOF        = "net.eof"
	classConnection = "sql.connection"
)

// ofClient goes by the client that err is from.
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

// plain are sentinel errors by their text, which nothing but it tells from others.
var plain = map[string]opinion{
	"invalid connection": says(classConnection, VerdictRetry), // go-sql-driver: it was lost in a query
	"conn closed":        says(classConnection, VerdictRetry), // pgx

	"redis: connection pool timeout":          says("redis.pool", VerdictRetry),
	"redis: connection pool exhausted":        says("redis.pool", VerdictRetry),
	"redis: connection pool has no free turn": says("redis.pool", VerdictRetry),

	// franz-go, of a handler that writes to Kafka itself
	"records have timed out before they were able to be produced":    says("kafka.produce", VerdictRetry),
	"record failed after being retried too many times":               says("kafka.produce", VerdictRetry),
	"the maximum amount of records are buffered, cannot buffer more": says("kafka.produce", VerdictRetry),
}

// fieldsOf is the struct that err is or points to.
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

// isMySQLError knows go-sql-driver's error. The text is no better to go by: it changed when the
// SQLSTATE came into it.
func isMySQLError(t reflect.Type) bool {
	return t.String() == "mysql.MySQLError" && t.Kind() == reflect.Struct && hasField(t, "Number", reflect.Uint16)
}

// isKafkaError knows franz-go's error of a broker's answer.
func isKafkaError(t reflect.Type) bool {
	return t.String() == "kerr.Error" && t.Kind() == reflect.Struct && hasField(t, "Retriable", reflect.Bool) && hasField(t, "Message", reflect.String)
}

// ofMySQL goes by the error's number, since MySQL has a SQLSTATE of its own for few, and HY000 for
// many of those that pass; for the other numbers by the SQLSTATE's class.
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

// mysqlRetry are the numbers of what passes by itself, from MySQL's error message reference.
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

// ofKafka takes the protocol's word for what is worth another try.
func ofKafka(fields reflect.Value) opinion {
	o := opinion{class: CleanClass("kafka." + fields.FieldByName("Message").String())}
	if fields.FieldByName("Retriable").Bool() {
		o.verdict, o.decided = VerdictRetry, true
	}
	return o
}

// ofRedis goes by the first word of what the server answered. The other words say what is wrong
// with a command; they are left to their type.
func ofRedis(text string) opinion {
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY", "OOM":
		return says("redis."+word, VerdictRetry)
	}
	if text == "ERR max number of clients reached" {
		return says("redis.MAXCLIENTS", VerdictRetry)
	}
	return opinion{}
}

// ofAWS knows the codes by which AWS throttles, most of them with HTTP status 400: those that its SDK
// tries again by itself (retry.DefaultThrottleErrorCodes, DefaultRetryableErrorCodes).
func ofAWS(code string) opinion {
	switch code {
	case "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "TooManyRequestsException",
		"ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded", "BandwidthLimitExceeded",
		"LimitExceededException", "RequestThrottled", "SlowDown", "PriorRequestNotComplete", "EC2ThrottledException",
		"RequestTimeout", "RequestTimeoutException":
		return says("aws."+code, VerdictRetry)
	}
	return opinion{}
}

// IsUniqueViolation reports whether err says that a row with that key is there already: SQLSTATE
// 23505 (PostgreSQL, by pgx and lib/pq) or number 1062 or 1586 of MySQL's (by go-sql-driver). Where
// the key is the record's idempotency key, the work was done by an earlier delivery:
//
//	if classify.IsUniqueViolation(err) {
//		return nil
//	}
//
// Any other unique violation is a failure, and terminal. So insert the idempotency key by a statement
// of its own, first in the transaction, and look at that statement's error only.
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
