package drivers_test

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidingkafka/siding/classify"
)

// table is the documentation's table: a verdict for each class, or for its beginning and "*".
type table struct {
	file string
	of   map[string]string
	used map[string]bool
}

// find returns the longest pattern that matches a class.
func (t *table) find(class string) (pattern string) {
	for p := range t.of {
		begin, open := strings.CutSuffix(p, "*")
		if (p == class || open && strings.HasPrefix(class, begin)) && (len(p) > len(pattern) || p == class) && pattern != class {
			pattern = p
		}
	}
	t.used[pattern] = true
	return pattern
}

func tableOf(t *testing.T, file string, row *regexp.Regexp, split *regexp.Regexp) *table {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tab := &table{file: file, of: map[string]string{}, used: map[string]bool{}}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		for _, pattern := range split.Split(strings.Trim(m[1], " `"), -1) {
			if _, twice := tab.of[pattern]; twice {
				t.Errorf("%s has %s twice", file, pattern)
			}
			tab.of[pattern] = strings.TrimSpace(m[2])
		}
	}
	if len(tab.of) < 30 {
		t.Fatalf("%s: only %d patterns are found: %v", file, len(tab.of), tab.of)
	}
	return tab
}

// samples are errors of every kind that the documentation names.
func samples() (all []error) {
	add := func(errs ...error) { all = append(all, errs...) }
	add(context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, &net.DNSError{}, net.ErrClosed, os.ErrDeadlineExceeded)
	for _, errno := range []syscall.Errno{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.EAGAIN, syscall.EINTR, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
	} {
		add(os.NewSyscallError("connect", errno))
	}
	for code := 400; code < 600; code++ {
		add(&smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: code}}, Err: errors.New("as asked")})
	}
	const signs = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, a := range signs {
		for _, b := range signs {
			for _, rest := range []string{"000", "006", "014", "505", "P01", "P03"} {
				add(&pgconn.PgError{Code: string(a) + string(b) + rest})
			}
		}
	}
	for number := 1000; number < 5000; number++ {
		for _, state := range []string{"", "HY000", "08004", "23000", "40001", "42S02", "22001"} {
			e := &mysql.MySQLError{Number: uint16(number)}
			copy(e.SQLState[:], state)
			add(e)
		}
	}
	for code := codes.Canceled; code < 100; code++ {
		add(status.Error(code, "as asked"))
	}
	for code := range retry.DefaultThrottleErrorCodes {
		add(&smithy.GenericAPIError{Code: code})
	}
	for code := int16(-1); code < 200; code++ {
		if err := kerr.ErrorForCode(code); err != nil {
			add(err)
		}
	}
	_, number := strconv.Atoi("x")
	add(redis.ErrPoolTimeout, kgo.ErrRecordTimeout, kgo.ErrRecordRetries, kgo.ErrMaxBuffered, json.Unmarshal([]byte("{"), new(int)), number, &classify.PanicError{Value: "x"})
	return all
}

// The table once had SQLSTATE 57014 as unknown and HTTP 500 as retried, and no test compared it
// with the code.
func TestTheDocumentedTablesAreWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	for _, tab := range []*table{
		tableOf(t, "../../../docs/classification.md", regexp.MustCompile("(?m)^\\|[^|]*\\| (`[^|]*`) \\| (retry|terminal|unknown|that of the SQLSTATE|retry if retriable, else unknown) \\|$"), regexp.MustCompile("` `")),
		tableOf(t, "../../doc.go", regexp.MustCompile(`(?m)^//\t(\S+(?:, \S+)*) {2,}(retry|terminal|unknown|that of the SQLSTATE|retry if retriable, else unknown)(?: {2,}.*)?$`), regexp.MustCompile(`, `)),
	} {
		for _, err := range samples() {
			r := new(classify.Classifier).Classify(err)
			pattern := tab.find(r.Class)
			want := tab.of[pattern]
			switch want {
			case "that of the SQLSTATE":
				var e *mysql.MySQLError
				errors.As(err, &e)
				state := e.SQLState
				if want = tab.of[tab.find("sql."+string(state[:]))]; state == [5]byte{} {
					want = "unknown"
				}
			case "retry if retriable, else unknown":
				if want = "unknown"; kerr.IsRetriable(err) {
					want = "retry"
				}
			}
			if got := verdictOf(r); got != want {
				t.Errorf("%s: %v (%T) is %s of class %s, documented as %q by %q", tab.file, err, err, got, r.Class, want, pattern)
			}
		}
		for pattern := range tab.of {
			if !tab.used[pattern] {
				t.Errorf("%s names %s, which no error has", tab.file, pattern)
			}
		}
	}
}
