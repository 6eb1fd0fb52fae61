package storage

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/minio/minio-go/v7"

	"github.com/sidingkafka/siding/serve/archive"
	"github.com/sidingkafka/siding/serve/internal/objects"
)

// environment has the credentials of each storage, and no others.
var environment = map[string]string{
	"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true",
	"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
}

// The client of S3 finds the credentials of the storage, and tries once.
func TestMain(m *testing.M) {
	for key, value := range environment {
		_ = os.Setenv(key, value)
	}
	_ = os.Setenv("AWS_MAX_ATTEMPTS", "1")
	os.Exit(m.Run())
}

// start starts a storage for a test.
func start(t *testing.T, opts ...gofakes3.Option) *storage {
	t.Helper()
	s, err := newStorage(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// s3 says where the storage is.
func (s *storage) s3() archive.S3 { return archive.S3{Endpoint: s.URL} }

// bucket returns the bucket of a storage. What it uploads has small parts.
func (s *storage) bucket(t *testing.T) *objects.Bucket {
	t.Helper()
	b, err := objects.New(name, objects.Place{Endpoint: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	b.PartSize = smallPart
	return b
}

// holds returns the names of all objects.
func (s *storage) holds(t *testing.T) (names []string) {
	t.Helper()
	for object := range s.inside.Client.ListObjects(t.Context(), name, minio.ListObjectsOptions{Recursive: true}) {
		if object.Err != nil {
			t.Fatal(object.Err)
		}
		names = append(names, object.Key)
	}
	return names
}

// uploads returns the names of the objects whose uploads are not complete, sorted.
func (s *storage) uploads(t *testing.T) (names []string) {
	t.Helper()
	all, err := s.inside.ListMultipartUploads(t.Context(), name, "", "", "", "", 100)
	if minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
		return nil // there was never one
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, up := range all.Uploads {
		names = append(names, up.Key)
	}
	slices.Sort(names)
	return names
}

// wantNothing checks that a storage has neither objects nor parts of such.
func (s *storage) wantNothing(t *testing.T) {
	t.Helper()
	if names := s.holds(t); len(names) > 0 {
		t.Fatalf("the storage has %q", names)
	}
	if names := s.uploads(t); len(names) > 0 {
		t.Errorf("uploads of %q are not complete", names)
	}
}

// smallPart is the size of the parts of objects in tests.
const smallPart = 128 << 10

// large is what is three small parts of an object.
var large = noise(2*smallPart + smallPart/4)

// noise is bytes that do not get smaller when compressed.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it never fails
	return b
}

// parse parses a target.
func parse(t *testing.T, text string, s archive.S3) *archive.Target {
	t.Helper()
	target, err := archive.Parse(text, s)
	if err != nil {
		t.Fatal(err)
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
func readAll(t *testing.T, text string, s archive.S3) []byte {
	t.Helper()
	r, err := archive.Open(t.Context(), text, s)
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
