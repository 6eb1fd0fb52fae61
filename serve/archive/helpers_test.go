package archive

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// The client of S3 finds the credentials of the fake storage, and tries once.
func TestMain(m *testing.M) {
	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_MAX_ATTEMPTS": "1",
	} {
		_ = os.Setenv(key, value)
	}
	os.Exit(m.Run())
}

// storage is S3 in the process, with the bucket letters.
type storage struct {
	S3
	mu       sync.Mutex
	requests int
	refuse   int                 // the number of the request that is refused, from 1 on
	late     bool                // it is done before it is refused, as when an answer is lost
	spoil    func([]byte) []byte // what becomes of the bodies of objects
}

func newStorage(t *testing.T) *storage {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("letters"); err != nil {
		t.Fatal(err)
	}
	s := &storage{}
	fake := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests++
		refused, late, spoil := s.requests == s.refuse, s.late, s.spoil
		s.mu.Unlock()
		switch {
		case refused:
			if late {
				fake.ServeHTTP(httptest.NewRecorder(), r)
			}
			_, _ = io.Copy(io.Discard, r.Body)
			http.Error(w, `<Error><Code>AccessDenied</Code><Message>refused</Message></Error>`, http.StatusForbidden)
		case spoil != nil && r.Method == http.MethodGet:
			got := httptest.NewRecorder()
			fake.ServeHTTP(got, r)
			maps.Copy(w.Header(), got.Header())
			w.Header().Del("Content-Length")
			_, _ = w.Write(spoil(got.Body.Bytes()))
		default:
			fake.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.Endpoint = server.URL
	return s
}

// client returns a client of the storage.
func (s *storage) client(t *testing.T) *minio.Core {
	t.Helper()
	client, err := minio.NewCore(strings.TrimPrefix(s.Endpoint, "http://"), &minio.Options{Creds: credentials.NewStaticV4("test", "test", "")})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// refuseNext makes the storage refuse one request: the n-th from now on.
func (s *storage) refuseNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.refuse = 0, n
}

// count returns how many requests there were.
func (s *storage) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// smallPart is the size of the parts of objects in tests: the race detector compresses a megabyte
// in a second.
const smallPart = 128 << 10

// parse parses a target. What it uploads has small parts.
func parse(t *testing.T, text string, s S3) *Target {
	t.Helper()
	target, err := Parse(text, s)
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := target.store.(bucket); ok {
		b.objects.PartSize = smallPart
	}
	return target
}

// lines writes these bytes, as one letter.
func lines(text []byte) func(io.Writer) (int64, error) {
	return func(w io.Writer) (int64, error) {
		_, err := w.Write(text)
		return 1, err
	}
}

// readAll returns what an archive has, read twice, as an import does.
func readAll(t *testing.T, text string, s S3) []byte {
	t.Helper()
	r, err := Open(t.Context(), text, s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	begin, err1 := r.Seek(0, io.SeekCurrent)
	first, err2 := io.ReadAll(r)
	_, err3 := r.Seek(begin, io.SeekStart)
	second, err4 := io.ReadAll(r)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("%s is read as %d bytes, and then as %d others", text, len(first), len(second))
	}
	return first
}
