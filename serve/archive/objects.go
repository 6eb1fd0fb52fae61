package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
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

// partSize is how many bytes of an object are one part of a multipart upload. S3 allows 10,000
// parts, so an archive can have 80 GB. An upload takes the memory of two parts. A smaller object is
// uploaded by one request.
const partSize = 8 << 20

// answerLimit is how long storage may take to begin an answer, and tries is how often the client
// asks, unless AWS_MAX_ATTEMPTS says so.
const (
	answerLimit = 30 * time.Second
	tries       = 3
)

// objects are the store of one bucket.
type objects struct {
	bucket   string
	client   *minio.Core
	partSize int64
	onlyNew  bool // the storage knows If-None-Match
}

// newObjects makes the store of a bucket. It reads the environment, and asks nobody.
func newObjects(bucket string, s S3) (*objects, error) {
	endpoint := cmp.Or(s.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	address, err := url.Parse(cmp.Or(endpoint, "https://s3.amazonaws.com"))
	if err != nil {
		return nil, fmt.Errorf("archive: the endpoint of S3: %w", err)
	}
	transport, err := newTransport(address.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("archive: the connections to S3: %w", err)
	}
	o := &minio.Options{
		Creds:  credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Timeout: answerLimit}}}),
		Secure: address.Scheme == "https", Transport: transport, Region: cmp.Or(s.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1"),
		MaxRetries: tries, UploadLimits: &minio.UploadLimits{MinPartSize: 1},
	}
	if n, err := strconv.Atoi(os.Getenv("AWS_MAX_ATTEMPTS")); err == nil {
		o.MaxRetries = max(n, 1)
	}
	if endpoint != "" {
		o.BucketLookup = minio.BucketLookupPath // other storage knows no buckets as host names
	}
	client, err := minio.NewCore(address.Host+address.Path, o)
	if err != nil {
		return nil, fmt.Errorf("archive: the endpoint of S3, %s: %w", address, err)
	}
	return &objects{bucket, client, partSize, endpoint == ""}, nil
}

// newTransport returns the connections to storage. Storage that says nothing is given up.
func newTransport(secure bool) (*http.Transport, error) {
	t, err := minio.DefaultTransport(secure)
	if err == nil {
		t.ResponseHeaderTimeout = answerLimit
	}
	return t, err
}

// write uploads an object. It has its name when the upload is complete.
func (o *objects) write(ctx context.Context, name string, once bool, from func(io.Writer) error) error {
	if !once { // storage may not know If-None-Match
		_, err := o.client.StatObject(ctx, o.bucket, name, minio.StatObjectOptions{})
		if err == nil {
			return ErrExists
		}
		if minio.ToErrorResponse(err).StatusCode != http.StatusNotFound {
			return refusal(err)
		}
	}
	body, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := from(out)
		_ = out.CloseWithError(err) // it never fails; nil is the end of the body
		done <- err
	}()
	err := o.upload(ctx, name, body)
	_ = body.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // it never fails; it ends from
	if wrote := <-done; wrote != nil && !errors.Is(wrote, io.ErrClosedPipe) {
		return wrote
	}
	if err != nil && once {
		// The storage may have completed what it did not answer. No other archive has the name.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
		defer cancel()
		_ = o.remove(ctx, name)
	}
	return err
}

// upload uploads a body: by one request if it is one part at most.
func (o *objects) upload(ctx context.Context, name string, body io.Reader) error {
	// Some storage knows no signatures of the parts of a body. That of the header has the MD5.
	options := minio.PutObjectOptions{PartSize: uint64(o.partSize), SendContentMd5: true, DisableContentSha256: true}
	if o.onlyNew {
		options.SetMatchETagExcept("*")
	}
	first := make([]byte, o.partSize)
	n, err := io.ReadFull(body, first)
	size := int64(-1) // not known
	switch {
	case err == nil:
		body = io.MultiReader(bytes.NewReader(first), body)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		body, size = bytes.NewReader(first[:n]), int64(n)
	default:
		return err
	}
	_, err = o.client.Client.PutObject(ctx, o.bucket, name, body, size, options)
	return refusal(err)
}

// refusal adds to an answer of the storage its status and its code, which tell what is denied.
func refusal(err error) error {
	if is := minio.ToErrorResponse(err); is.StatusCode != 0 {
		return fmt.Errorf("%w (%s, HTTP status %d)", err, is.Code, is.StatusCode)
	}
	return err
}

func (o *objects) open(ctx context.Context, name string) (io.ReadCloser, error) {
	body, _, _, err := o.client.GetObject(ctx, o.bucket, name, minio.GetObjectOptions{})
	return body, refusal(err)
}

func (o *objects) remove(ctx context.Context, name string) error {
	return refusal(o.client.RemoveObject(ctx, o.bucket, name, minio.RemoveObjectOptions{}))
}

// sweep aborts uploads of several parts, which storage keeps, and counts, until somebody does.
func (o *objects) sweep(ctx context.Context, folder string, before time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	for up := range o.client.ListIncompleteUploads(ctx, o.bucket, folder+"/", true) {
		if up.Err != nil {
			return refusal(up.Err)
		}
		if path.Dir(up.Key) != folder || !isArchive(path.Base(up.Key)) || !up.Initiated.Before(before) {
			continue
		}
		if err := o.client.AbortMultipartUpload(ctx, o.bucket, up.Key, up.UploadID); err != nil {
			return refusal(err)
		}
	}
	return ctx.Err()
}

func (o *objects) isFolder(name string) bool { return name == "" }

func (o *objects) list(ctx context.Context, folder string) (names []string, err error) {
	if folder != "" {
		folder += "/"
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	for object := range o.client.Client.ListObjects(ctx, o.bucket, minio.ListObjectsOptions{Prefix: folder, Recursive: true}) {
		if object.Err != nil {
			return nil, refusal(object.Err)
		}
		if isArchive(path.Base(object.Key)) {
			names = append(names, object.Key)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

func (o *objects) join(folder, name string) string { return path.Join(folder, name) }

func (o *objects) location(name string) string { return s3Scheme + o.bucket + "/" + name }
