package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// S3 says where S3-compatible storage is. Credentials come from where all tools of AWS have them:
// the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), a profile, or the role of the
// machine, container or service account.
type S3 struct {
	// Endpoint is the URL of storage that is not Amazon's. Default AWS_ENDPOINT_URL_S3, or else
	// Amazon's of the region.
	Endpoint string `yaml:"endpoint"`
	// Region is that of the bucket. Default AWS_REGION, or else us-east-1.
	Region string `yaml:"region"`
}

// partSize is how many bytes of an object are one part of a multipart upload. S3 allows 10,000
// parts, so an archive can have 80 GB. An upload takes the memory of three parts. A smaller object
// is uploaded by one request.
const partSize = 8 << 20

// answerLimit is how long storage may take to begin an answer. The client asks three times.
const answerLimit = 30 * time.Second

// objects are the store of one bucket.
type objects struct {
	bucket   string
	client   *s3.Client
	partSize int64
}

func newObjects(bucket string, s S3) (*objects, error) {
	// It reads the environment and files, and asks nobody.
	cfg, err := config.LoadDefaultConfig(context.Background(), func(o *config.LoadOptions) error {
		o.Region = s.Region
		o.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout = answerLimit })
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("archive: the configuration of S3: %w", err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		if o.Region == "" {
			o.Region = "us-east-1"
		}
		if s.Endpoint != "" {
			o.BaseEndpoint = &s.Endpoint
		}
		if o.BaseEndpoint != nil {
			// Other storage knows neither buckets as host names nor Amazon's checksums at the end
			// of a body. The signature of each request has the SHA-256 of its body.
			o.UsePathStyle = true
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	})
	return &objects{bucket, client, partSize}, nil
}

// write uploads an object. It has its name when the upload is complete.
func (o *objects) write(ctx context.Context, name string, once bool, from func(io.Writer) error) error {
	if !once { // storage may not know If-None-Match
		_, err := o.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &o.bucket, Key: &name})
		if err == nil {
			return ErrExists
		}
		if _, missing := errors.AsType[*types.NotFound](err); !missing {
			return err
		}
	}
	up := transfermanager.New(o.client, func(t *transfermanager.Options) {
		t.PartSizeBytes, t.MultipartUploadThreshold, t.Concurrency = o.partSize, o.partSize, 1
		t.FailTimeout = removeLimit
		t.RequestChecksumCalculation = o.client.Options().RequestChecksumCalculation
	})
	in := &transfermanager.UploadObjectInput{Bucket: &o.bucket, Key: &name}
	if o.client.Options().BaseEndpoint == nil {
		in.IfNoneMatch = aws.String("*")
	}
	body, out := io.Pipe()
	in.Body = body
	done := make(chan error, 1)
	go func() {
		err := from(out)
		_ = out.CloseWithError(err) // it never fails; nil is the end of the body
		done <- err
	}()
	_, err := up.UploadObject(ctx, in)
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

func (o *objects) open(ctx context.Context, name string) (io.ReadCloser, error) {
	got, err := o.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &o.bucket, Key: &name})
	if err != nil {
		return nil, err
	}
	return got.Body, nil
}

func (o *objects) remove(ctx context.Context, name string) error {
	_, err := o.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &o.bucket, Key: &name})
	return err
}

// sweep aborts uploads of several parts, which storage keeps, and counts, until somebody does.
func (o *objects) sweep(ctx context.Context, folder string, before time.Time) error {
	prefix := folder + "/"
	pages := s3.NewListMultipartUploadsPaginator(o.client, &s3.ListMultipartUploadsInput{Bucket: &o.bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, up := range page.Uploads {
			key := aws.ToString(up.Key)
			if path.Dir(key) != folder || !isArchive(path.Base(key)) || !aws.ToTime(up.Initiated).Before(before) {
				continue
			}
			if _, err := o.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &o.bucket, Key: up.Key, UploadId: up.UploadId}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *objects) isFolder(name string) bool { return name == "" }

func (o *objects) list(ctx context.Context, folder string) (names []string, err error) {
	if folder != "" {
		folder += "/"
	}
	for pages := s3.NewListObjectsV2Paginator(o.client, &s3.ListObjectsV2Input{Bucket: &o.bucket, Prefix: &folder}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, object := range page.Contents {
			if isArchive(path.Base(*object.Key)) {
				names = append(names, *object.Key)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

func (o *objects) join(folder, name string) string { return path.Join(folder, name) }

func (o *objects) location(name string) string { return s3Scheme + o.bucket + "/" + name }
