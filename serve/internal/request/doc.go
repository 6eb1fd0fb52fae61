// Package request has the inputs of the HTTP API's operations: parameters by huma's tags, and
// bodies of package api. A caller of an operation without HTTP fills them by hand.
package request
