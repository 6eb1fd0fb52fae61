package objects

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Place says where storage is: what is empty comes from the environment.
type Place struct {
	// Endpoint is the URL of storage that is not Amazon's.
	Endpoint string
	// Region is that of the bucket.
	Region string
}

// answerLimit is how long storage may take to begin an answer, and tries is how often the client
// asks, unless AWS_MAX_ATTEMPTS says so.
const (
	answerLimit = 30 * time.Second
	tries       = 3
)

// client makes a client of the storage, and reports whether that is Amazon's. It reads the
// environment, and sends no request.
func (p Place) client() (client *minio.Core, amazon bool, err error) {
	endpoint := cmp.Or(p.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	address, err := url.Parse(cmp.Or(endpoint, "https://s3.amazonaws.com"))
	if err != nil {
		return nil, false, fmt.Errorf("the endpoint of S3: %w", err)
	}
	transport, err := newTransport(address.Scheme == "https")
	if err != nil {
		return nil, false, fmt.Errorf("the connections to S3: %w", err)
	}
	o := &minio.Options{
		Creds:  credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Timeout: answerLimit}}}),
		Secure: address.Scheme == "https", Transport: transport, Region: cmp.Or(p.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1"),
		MaxRetries: tries, UploadLimits: &minio.UploadLimits{MinPartSize: 1},
	}
	if n, err := strconv.Atoi(os.Getenv("AWS_MAX_ATTEMPTS")); err == nil {
		o.MaxRetries = max(n, 1)
	}
	if endpoint != "" {
		o.BucketLookup = minio.BucketLookupPath // other storage knows no buckets as host names
	}
	client, err = minio.NewCore(address.Host+address.Path, o)
	if err != nil {
		return nil, false, fmt.Errorf("the endpoint of S3, %s: %w", address, err)
	}
	return client, endpoint == "", nil
}

// newTransport returns the connections to storage. Storage that says nothing is given up.
func newTransport(secure bool) (*http.Transport, error) {
	t, err := minio.DefaultTransport(secure)
	if err == nil {
		t.ResponseHeaderTimeout = answerLimit
	}
	return t, err
}
