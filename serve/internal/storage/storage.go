package storage

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// name is that of the bucket of each storage.
const name = "letters"

// storage is S3 in the process, with one bucket. It is safe for concurrent use.
type storage struct {
	*httptest.Server
	inside *minio.Core // sees what is there: to it nothing is refused or spoilt
	direct *httptest.Server

	mu       sync.Mutex
	requests int
	refuses  func(n int) bool    // whether it refuses the n-th request, from 1 on; nil refuses none
	late     bool                // it does what it refuses, as when an answer is lost
	spoil    func([]byte) []byte // what becomes of the bodies of objects
}

// newStorage starts a storage, which runs until it is closed.
func newStorage(opts ...gofakes3.Option) (*storage, error) {
	backend := s3mem.New()
	if err := backend.CreateBucket(name); err != nil {
		return nil, err
	}
	fake := gofakes3.New(backend, append(opts, gofakes3.WithLogger(gofakes3.DiscardLog()))...).Server()
	s := &storage{direct: httptest.NewServer(fake)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, fake) }))
	var err error
	s.inside, err = minio.NewCore(strings.TrimPrefix(s.direct.URL, "http://"), &minio.Options{Creds: credentials.NewStaticV4("test", "test", "")})
	return s, err
}

func (s *storage) close() {
	s.Close()
	s.direct.Close()
}

func (s *storage) answer(w http.ResponseWriter, r *http.Request, fake http.Handler) {
	s.mu.Lock()
	s.requests++
	refused, late, spoil := s.refuses != nil && s.refuses(s.requests), s.late, s.spoil
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
}

// refuse makes the storage refuse requests, which it counts from now on.
func (s *storage) refuse(which func(n int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.refuses = 0, which
}

// count returns how many requests there were.
func (s *storage) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}
