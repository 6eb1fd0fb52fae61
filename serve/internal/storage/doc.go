// Package storage has storage with the interface of S3, and tests what archives, the retention of
// package serve and the program keep there: also while it refuses requests, loses its answers or
// spoils what it got. The library whose storage that is brings the SDK of AWS, and so this is a
// module of its own.
package storage
