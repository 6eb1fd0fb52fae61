package drivers_test

import (
	"bufio"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

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

// send calls a service that answers with a status and a code.
func send(t *testing.T, status int, code string) error {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		if code != "" {
			_, _ = fmt.Fprintf(w, `{"__type":"com.amazonaws.sqs#%s","message":"as asked"}`, code)
		}
	}))
	defer s.Close()
	return sendTo(t, s.URL)
}

func sendTo(t *testing.T, url string) error {
	t.Helper()
	c := sqs.New(sqs.Options{
		BaseEndpoint: aws.String(url), Region: "eu-central-1", Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(url), MessageBody: aws.String("x")})
	return err
}

func TestAWS_WhatItsSDKTriesAgainIsRetried(t *testing.T) {
	t.Parallel()
	for _, codes := range []map[string]struct{}{retry.DefaultThrottleErrorCodes, retry.DefaultRetryableErrorCodes} {
		for code := range codes {
			means(t, code, send(t, http.StatusBadRequest, code), "aws."+code, "retry")
		}
	}
	means(t, "not its fault", send(t, http.StatusBadRequest, "InvalidAddress"), "http.400", "terminal")
	means(t, "denied", send(t, http.StatusForbidden, "AccessDeniedException"), "http.403", "terminal")
	means(t, "unavailable", send(t, http.StatusServiceUnavailable, ""), "http.503", "retry")
	means(t, "bad gateway", send(t, http.StatusBadGateway, ""), "http.502", "retry")
	means(t, "internal", send(t, http.StatusInternalServerError, "InternalFailure"), "http.500", "unknown")
	means(t, "no listener", sendTo(t, "http://"+closedPort(t)), "net.refused", "retry")
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestGRPC_Codes(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		var code codes.Code
		_, _ = fmt.Sscan(md["code"][0], (*uint32)(&code))
		return status.Error(code, "as asked")
	}))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)

	c := dial(t, l.Addr().String())
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "code", fmt.Sprint(uint32(code)))
		err := c.Invoke(ctx, "/billing/Charge", &emptypb.Empty{}, &emptypb.Empty{})
		verdict := "terminal"
		switch code {
		case codes.Canceled, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Unavailable:
			verdict = "retry"
		case codes.Unknown, codes.Internal:
			verdict = "unknown"
		}
		means(t, code.String(), fmt.Errorf("charge: %w", err), "grpc."+code.String(), verdict)
	}
	over, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	means(t, "timeout", c.Invoke(over, "/billing/Charge", &emptypb.Empty{}, &emptypb.Empty{}), "grpc.DeadlineExceeded", "retry")
	means(t, "no listener", dial(t, closedPort(t)).Invoke(t.Context(), "/billing/Charge", &emptypb.Empty{}, &emptypb.Empty{}), "grpc.Unavailable", "retry")
}

func get(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.ReadAll(res.Body)
	return err
}

func TestHTTP_OutagesAreRetried(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	means(t, "no listener", get(ctx, http.DefaultClient, "http://"+closedPort(t)), "net.refused", "retry")
	means(t, "the server hangs up", get(ctx, http.DefaultClient, "http://"+listen(t, hangUp)), "net.eof", "retry")
	means(t, "the server resets", get(ctx, http.DefaultClient, "http://"+listen(t, func(c net.Conn) {
		hangUp(c)
		_ = c.(*net.TCPConn).SetLinger(0)
	})), "net.reset", "retry")

	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-gone:
		}
	}))
	t.Cleanup(silent.Close)
	means(t, "the client's timeout", get(ctx, &http.Client{Timeout: 20 * time.Millisecond}, silent.URL), "timeout", "retry")
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	means(t, "the context's timeout", get(short, http.DefaultClient, silent.URL), "timeout", "retry")
	over, cancel := context.WithCancel(ctx)
	cancel()
	means(t, "the context is cancelled", get(over, http.DefaultClient, silent.URL), "canceled", "retry")

	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
	}))
	t.Cleanup(cut.Close)
	means(t, "the body is cut short", get(ctx, http.DefaultClient, cut.URL), "net.eof", "retry")

	unresolved := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") }}
	_, err := unresolved.LookupHost(ctx, "registry.invalid")
	means(t, "no name server answers", err, "net.dns", "retry")
}

func TestKafka_WhatTheProtocolCallsRetriableIsRetried(t *testing.T) {
	t.Parallel()
	retriable := 0
	for code := int16(-1); code < 200; code++ {
		err := kerr.ErrorForCode(code)
		var e *kerr.Error
		if !errors.As(err, &e) || e.Code != code {
			continue // no error has this code
		}
		verdict := "unknown"
		if kerr.IsRetriable(err) {
			verdict = "retry"
			retriable++
		}
		means(t, e.Message, fmt.Errorf("publish: %w", err), "kafka."+e.Message, verdict)
	}
	if retriable == 0 {
		t.Error("no code is retriable")
	}
}

func TestKafka_RecordsThatCannotBeWrittenInTime(t *testing.T) {
	t.Parallel()
	c, err := kgo.NewClient(kgo.SeedBrokers(closedPort(t)), kgo.RecordDeliveryTimeout(time.Second), kgo.MaxBufferedRecords(1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first, second := make(chan error, 1), make(chan error, 1)
	c.TryProduce(t.Context(), &kgo.Record{Topic: "orders"}, func(_ *kgo.Record, err error) { first <- err })
	c.TryProduce(t.Context(), &kgo.Record{Topic: "orders"}, func(_ *kgo.Record, err error) { second <- err })
	means(t, "there is no room", fmt.Errorf("publish: %w", <-second), "kafka.produce", "retry")
	means(t, "no broker accepts it", fmt.Errorf("publish: %w", <-first), "kafka.produce", "retry")
	means(t, "too many retries", kgo.ErrRecordRetries, "kafka.produce", "retry")
}

// answers is a Redis that does not know HELLO, and gives the same answer to all other commands, or
// none if the answer is empty.
func answers(answer string, asked chan<- struct{}) func(net.Conn) {
	return func(c net.Conn) {
		for in := bufio.NewReader(c); ; {
			line, err := in.ReadString('\n') // *n, then n times $length and the argument
			if err != nil {
				return
			}
			n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
			var args []string
			for range n {
				_, _ = in.ReadString('\n')
				arg, _ := in.ReadString('\n')
				args = append(args, strings.ToLower(strings.TrimSpace(arg)))
			}
			switch {
			case n > 0 && (args[0] == "hello" || args[0] == "client"):
				_, _ = fmt.Fprint(c, "-ERR unknown command\r\n")
				continue
			case asked != nil:
				asked <- struct{}{}
			}
			if answer == "" {
				_, _ = io.Copy(io.Discard, c)
				return
			}
			_, _ = fmt.Fprintf(c, "%s\r\n", answer)
		}
	}
}

func client(t *testing.T, address string, change func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: address, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, Protocol: 2}
	if change != nil {
		change(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRedis_OutagesAreRetried(t *testing.T) {
	t.Parallel()
	get := func(c *redis.Client) error { return c.Get(t.Context(), "k").Err() }
	for _, answer := range []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.", "CLUSTERDOWN The cluster is down",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "TRYAGAIN Multiple keys request during rehashing of slot",
		"NOREPLICAS Not enough good replicas to write.", "BUSY Redis is busy running a script.", "OOM command not allowed when used memory > 'maxmemory'.",
	} {
		word, _, _ := strings.Cut(answer, " ")
		means(t, answer, get(client(t, listen(t, answers("-"+answer, nil)), nil)), "redis."+word, "retry")
	}
	means(t, "clients", get(client(t, listen(t, answers("-ERR max number of clients reached", nil)), nil)), "redis.MAXCLIENTS", "retry")
	means(t, "a wrong command", get(client(t, listen(t, answers("-WRONGTYPE Operation against a key holding the wrong kind of value", nil)), nil)), "proto.RedisError", "unknown")
	means(t, "no such key", get(client(t, listen(t, answers("$-1", nil)), nil)), "proto.RedisError", "unknown")

	means(t, "no listener", get(client(t, closedPort(t), nil)), "net.refused", "retry")
	means(t, "the server hangs up", get(client(t, listen(t, hangUp), nil)), "net.eof", "retry")
	means(t, "the server is silent", get(client(t, listen(t, answers("", nil)), func(o *redis.Options) { o.ReadTimeout = 20 * time.Millisecond })), "net.timeout", "retry")
}

func TestRedis_APoolThatIsUsedUpIsAnOutage(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	c := client(t, listen(t, answers("", asked)), func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 20*time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.Get(ctx, "k") // takes the only connection
	<-asked
	means(t, "the pool is used up", c.Get(t.Context(), "k").Err(), "redis.pool", "retry")
	means(t, "the pool is exhausted", redis.ErrPoolExhausted, "redis.pool", "retry")
}
