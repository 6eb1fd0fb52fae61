package protobuf

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// An Any within an Any, and so on, is as deep as messages within messages.
func TestPrinter_BoundsTheDepthOfAny(t *testing.T) {
	t.Parallel()
	s := parsed(t, `syntax = "proto3"; import "google/protobuf/any.proto"; message M { google.protobuf.Any a = 1; }`, nil)
	var b []byte
	for range 600 {
		b = append(protowire.AppendString([]byte{10}, "x/google.protobuf.Any"), protowire.AppendBytes([]byte{18}, b)...)
	}
	if got, _, err := decoded(s, protowire.AppendBytes([]byte{10}, b), 0); err == nil || !strings.Contains(err.Error(), "deeper") {
		t.Errorf("%.60s, %v", got, err)
	}
}
