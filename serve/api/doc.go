// Package api has the types of the server's HTTP API, and its description. The server answers with
// them, and clients decode into them. Later versions may add fields, and neither rename nor remove
// one.
package api
