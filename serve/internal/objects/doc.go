// Package objects keeps files in a bucket of storage with the interface of Amazon S3, for package
// archive. The module serve/internal/storage tests it, since that has such storage.
package objects
