// Package httpapi is the HTTP API: it takes the inputs of requests, asks a Desk, and writes what
// comes of it.
package httpapi
