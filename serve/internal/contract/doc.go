// Package contract tells which changes of an HTTP API break its clients. Tests use it. A library
// for this, oasdiff, takes a hundred modules, and whoever requires the server would inherit their
// graph.
package contract
