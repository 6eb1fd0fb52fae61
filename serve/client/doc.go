// Package client asks a server of package serve over its HTTP API. Its methods answer with types of
// package api. An answer that is no success is an *api.Problem, also where a proxy sent it. What
// the API does not send, as a page for signing in, is an error.
package client
