// Package client asks a server of package serve over its HTTP API. Its methods answer with types of
// package api; an answer that is no success is an *api.Problem.
package client
