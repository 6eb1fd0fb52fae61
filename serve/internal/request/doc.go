// Package request has the inputs of the HTTP API's operations: parameters by huma's tags, and
// bodies of package api. Whoever calls an operation without HTTP fills them by hand.
package request
