// Package objects keeps files in a bucket of storage with the interface of Amazon S3, for package
// archive.
package objects
