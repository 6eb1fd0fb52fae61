package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/sidingkafka/siding/serve/internal/objects"
)

// S3 says where S3-compatible storage is. Credentials come from the environment (AWS_ACCESS_KEY_ID
// and AWS_SECRET_ACCESS_KEY), a profile of AWS's files, or the role of the machine, container or
// service account.
type S3 struct {
	// Endpoint is the URL of storage that is not Amazon's. Default AWS_ENDPOINT_URL_S3, or else
	// Amazon's of the region.
	Endpoint string `yaml:"endpoint"`
	// Region is that of the bucket. Default AWS_REGION, or else us-east-1.
	Region string `yaml:"region"`
}

// bucket is the store of one bucket.
type bucket struct {
	objects *objects.Bucket
	name    string
}

// newBucket makes the store of a bucket. It reads the environment, and sends no request.
func newBucket(name string, s S3) (bucket, error) {
	b, err := objects.New(name, objects.Place(s))
	if err != nil {
		return bucket{}, fmt.Errorf("archive: %w", err)
	}
	return bucket{b, name}, nil
}

func (b bucket) write(ctx context.Context, name string, once bool, from func(io.Writer) error) error {
	err := b.objects.Write(ctx, name, once, from)
	if errors.Is(err, objects.ErrTaken) {
		return ErrExists
	}
	return err
}

func (b bucket) open(ctx context.Context, name string) (io.ReadCloser, error) {
	return b.objects.Open(ctx, name)
}

func (b bucket) remove(ctx context.Context, name string) error { return b.objects.Remove(ctx, name) }

func (b bucket) sweep(ctx context.Context, folder string, before time.Time) error {
	return b.objects.Sweep(ctx, folder, before, isArchive)
}

func (bucket) isFolder(name string) bool { return name == "" }

func (b bucket) list(ctx context.Context, folder string) ([]string, error) {
	return b.objects.List(ctx, folder, isArchive)
}

func (bucket) join(folder, name string) string { return path.Join(folder, name) }

func (b bucket) location(name string) string { return s3Scheme + b.name + "/" + name }
