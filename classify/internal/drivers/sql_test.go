package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"

	"github.com/sidingkafka/siding/classify"
)

// postgres answers each query with an error of the SQLSTATE that the query consists of.
func postgres(c net.Conn) {
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for b.Flush() == nil {
		m, err := b.Receive()
		if err != nil {
			return
		}
		q, ok := m.(*pgproto3.Query)
		switch {
		case !ok:
			return
		case len(q.String) < 5:
			b.Send(&pgproto3.EmptyQueryResponse{})
		case q.String[:5] == "close":
			return
		default:
			b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: q.String[:5], Message: "as asked"})
		}
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	}
}

// postgresBy are the ways to connect to PostgreSQL: pgx itself, and two drivers of database/sql.
func postgresBy(t *testing.T, address string) map[string]func(ctx context.Context, query string) error {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	dsn := fmt.Sprintf("host=%s port=%s user=u password=p dbname=d sslmode=disable", host, port)
	by := map[string]func(context.Context, string) error{
		"pgx": func(ctx context.Context, query string) error {
			cfg, err := pgx.ParseConfig(dsn + " default_query_exec_mode=simple_protocol")
			if err != nil {
				return err
			}
			cfg.RuntimeParams = nil
			c, err := pgx.ConnectConfig(ctx, cfg)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close(ctx) }()
			_, err = c.PgConn().Exec(ctx, query).ReadAll()
			return err
		},
	}
	for _, driver := range []string{"pgx", "postgres"} {
		db, err := sql.Open(driver, map[string]string{"pgx": dsn + " default_query_exec_mode=exec", "postgres": dsn}[driver])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		if driver == "postgres" {
			by["lib/pq"] = func(ctx context.Context, query string) error {
				_, err := db.ExecContext(ctx, query)
				return err
			}
			continue
		}
		by["pgx by database/sql"] = func(ctx context.Context, query string) error {
			c, err := db.Conn(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			return c.Raw(func(any) error { return by["pgx"](ctx, query) })
		}
	}
	return by
}

func TestPostgreSQL_SQLSTATEs(t *testing.T) {
	t.Parallel()
	for name, exec := range postgresBy(t, listen(t, postgres)) {
		for state, verdict := range map[string]string{
			"25006": "retry", "55P03": "retry", "57014": "retry", "58030": "retry", "58P01": "retry", "57P01": "retry", "40001": "retry",
			"40P01": "retry", "53300": "retry", "08006": "retry", "23505": "terminal", "42P01": "terminal", "22001": "terminal", "XX000": "unknown",
		} {
			err := exec(t.Context(), state)
			means(t, name, err, "sql."+state, verdict)
			if got := classify.IsUniqueViolation(fmt.Errorf("insert: %w", err)); got != (state == "23505") {
				t.Errorf("%s: IsUniqueViolation(%v) = %v", name, err, got)
			}
		}
	}
}

func TestPostgreSQL_OutagesAreRetried(t *testing.T) {
	t.Parallel()
	for name, exec := range postgresBy(t, closedPort(t)) {
		means(t, name+", no listener", exec(t.Context(), "select"), "net.refused", "retry")
	}
	for at, server := range map[string]func(net.Conn){"at the start": hangUp, "in a query": postgres} {
		for name, exec := range postgresBy(t, listen(t, server)) {
			err := exec(t.Context(), "close")
			if r := new(classify.Classifier).Classify(err); err == nil || verdictOf(r) != "retry" || r.Class != "net.eof" && r.Class != "sql.connection" && r.Class != "net.reset" {
				t.Errorf("%s, hung up %s: %v is %s of class %s, want retry of a lost connection", name, at, err, verdictOf(r), r.Class)
			}
		}
	}

	address := listen(t, postgres)
	host, port, _ := net.SplitHostPort(address)
	c, err := pgx.Connect(t.Context(), fmt.Sprintf("host=%s port=%s user=u sslmode=disable", host, port))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close(t.Context())
	_, err = c.Exec(t.Context(), "40001")
	means(t, "pgx, the connection is closed", err, "sql.connection", "retry")

	db, err := sql.Open("postgres", fmt.Sprintf("host=%s port=%s user=u sslmode=disable", host, port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	one, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = one.Close()
	means(t, "database/sql, the connection is closed", one.PingContext(t.Context()), "sql.connection", "retry")
}

// mysqlSays answers each connection with an error, like a server that is full.
func mysqlSays(number uint16, message string) func(net.Conn) {
	return func(c net.Conn) {
		body := append([]byte{0xff, byte(number), byte(number >> 8)}, message...)
		_, _ = c.Write(append([]byte{byte(len(body)), 0, 0, 0}, body...))
		hangUp(c)
	}
}

func openMySQL(t *testing.T, address string) *sql.DB {
	t.Helper()
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Logger = "tcp", address, "u", &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestMySQL_OutagesAreRetried(t *testing.T) {
	t.Parallel()
	for number, message := range map[uint16]string{1040: "Too many connections", 1053: "Server shutdown in progress", 1203: "User has too many connections"} {
		err := openMySQL(t, listen(t, mysqlSays(number, message))).PingContext(t.Context())
		means(t, message, err, fmt.Sprint("mysql.", number), "retry")
	}
	means(t, "no listener", openMySQL(t, closedPort(t)).PingContext(t.Context()), "net.refused", "retry")
	means(t, "the server hangs up", openMySQL(t, listen(t, func(c net.Conn) {})).PingContext(t.Context()), "sql.connection", "retry")
	means(t, "lost in a query", mysql.ErrInvalidConn, "sql.connection", "retry")
}

func TestMySQL_Numbers(t *testing.T) {
	t.Parallel()
	state := func(s string) (b [5]byte) { copy(b[:], s); return b }
	for _, tt := range []struct {
		number  uint16
		state   string
		verdict string
	}{
		{1205, "HY000", "retry"},
		{1213, "40001", "retry"},
		{1040, "08004", "retry"},
		{2006, "HY000", "retry"},
		{2013, "HY000", "retry"},
		{1205, "", "retry"}, // before MySQL 4.1
		{1290, "HY000", "retry"},
		{1836, "HY000", "retry"},
		{1203, "42000", "retry"},
		{1062, "23000", "terminal"},
		{1146, "42S02", "terminal"},
		{1406, "22001", "terminal"},
		{1364, "HY000", "unknown"},
		{1364, "", "unknown"},
	} {
		err := fmt.Errorf("charge: %w", &mysql.MySQLError{Number: tt.number, SQLState: state(tt.state), Message: "as asked"})
		means(t, tt.state, err, fmt.Sprint("mysql.", tt.number), tt.verdict)
		if got := classify.IsUniqueViolation(err); got != (tt.number == 1062) {
			t.Errorf("IsUniqueViolation(%v) = %v", err, got)
		}
	}
	var none *mysql.MySQLError
	if classify.IsUniqueViolation(none) || classify.IsUniqueViolation(nil) || classify.IsUniqueViolation(errors.New("Error 1062: Duplicate entry")) {
		t.Error("no error of MySQL's is a unique violation")
	}
}
