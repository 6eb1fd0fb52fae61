package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"
)

// partSize is how many bytes of an object are one part of a multipart upload. S3 allows 10,000
// parts, so an object can have 80 GB. An upload takes the memory of two parts. A smaller object is
// uploaded by one request.
const partSize = 8 << 20

// removeLimit is how long it may take to remove what was written without an answer.
const removeLimit = 30 * time.Second

// ErrTaken reports that there is an object of that name already.
var ErrTaken = errors.New("the name is taken")

// Bucket keeps objects under names with slashes.
type Bucket struct {
	// PartSize is the size of a part, in bytes: 8 MiB. Tests make it smaller.
	PartSize int64

	name    string
	client  *minio.Core
	onlyNew bool // the storage knows If-None-Match
}

// New returns a bucket of some storage. It reads the environment, and sends no request.
func New(name string, at Place) (*Bucket, error) {
	client, amazon, err := at.client()
	if err != nil {
		return nil, err
	}
	return &Bucket{PartSize: partSize, name: name, client: client, onlyNew: amazon}, nil
}

// Write calls from once, and uploads what that writes. The object has its name when the upload is
// complete. Write keeps nothing if it fails, if from fails, or if the name is taken, which is
// ErrTaken. once means that no other client can have chosen the name.
func (b *Bucket) Write(ctx context.Context, name string, once bool, from func(io.Writer) error) error {
	if !once { // storage may not know If-None-Match
		_, err := b.client.StatObject(ctx, b.name, name, minio.StatObjectOptions{})
		if err == nil {
			return ErrTaken
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
	err := b.upload(ctx, name, body)
	_ = body.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // it never fails; it ends from
	if wrote := <-done; wrote != nil && !errors.Is(wrote, io.ErrClosedPipe) {
		return wrote
	}
	if err != nil && once {
		// The storage may have completed what it did not answer. No other object has the name.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
		defer cancel()
		_ = b.Remove(ctx, name)
	}
	return err
}

// upload uploads a body: by one request if it is one part at most.
func (b *Bucket) upload(ctx context.Context, name string, body io.Reader) error {
	// Some storage knows no signatures of the parts of a body. That of the header has the MD5.
	options := minio.PutObjectOptions{PartSize: uint64(b.PartSize), SendContentMd5: true, DisableContentSha256: true}
	if b.onlyNew {
		options.SetMatchETagExcept("*")
	}
	first := make([]byte, b.PartSize)
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
	_, err = b.client.Client.PutObject(ctx, b.name, name, body, size, options)
	return refusal(err)
}

// refusal adds to an answer of the storage its status and its code, which say what is denied.
func refusal(err error) error {
	if is := minio.ToErrorResponse(err); is.StatusCode != 0 {
		return fmt.Errorf("%w (%s, HTTP status %d)", err, is.Code, is.StatusCode)
	}
	return err
}

// Open opens an object.
func (b *Bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	body, _, _, err := b.client.GetObject(ctx, b.name, name, minio.GetObjectOptions{})
	return body, refusal(err)
}

// Remove removes an object, if there is one.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	return refusal(b.client.RemoveObject(ctx, b.name, name, minio.RemoveObjectOptions{}))
}

// Sweep aborts uploads of several parts, which storage keeps, and counts, until a client does:
// those to a folder that were begun before a time, if ours says so of the object's last name.
func (b *Bucket) Sweep(ctx context.Context, folder string, before time.Time, ours func(name string) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	for up := range b.client.ListIncompleteUploads(ctx, b.name, folder+"/", true) {
		if up.Err != nil {
			return refusal(up.Err)
		}
		if path.Dir(up.Key) != folder || !ours(path.Base(up.Key)) || !up.Initiated.Before(before) {
			continue
		}
		if err := b.client.AbortMultipartUpload(ctx, b.name, up.Key, up.UploadID); err != nil {
			return refusal(err)
		}
	}
	return ctx.Err()
}

// List returns the names of the objects in a folder, sorted, folders within included: of those
// whose last name is ours.
func (b *Bucket) List(ctx context.Context, folder string, ours func(name string) bool) (names []string, err error) {
	if folder != "" {
		folder += "/"
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	for object := range b.client.Client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: folder, Recursive: true}) {
		if object.Err != nil {
			return nil, refusal(object.Err)
		}
		if ours(path.Base(object.Key)) {
			names = append(names, object.Key)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}
