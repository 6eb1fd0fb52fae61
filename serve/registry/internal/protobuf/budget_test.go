package protobuf

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sidingkafka/siding/serve/registry/internal/text"
)

// Two bytes are a message, and one is an element: a few megabytes would take a gigabyte of memory.
func TestBudget_BoundsTheParts(t *testing.T) {
	t.Parallel()
	s := parsed(t, `syntax = "proto2"; import "google/protobuf/any.proto"; message M {
		repeated M m = 1; repeated bool b = 2 [packed = true]; map<int32, M> x = 3; repeated group G = 4 {} repeated double d = 5; repeated string s = 6; optional google.protobuf.Any any = 7; }`, nil)
	packed := func(number byte, size int) []byte {
		return protowire.AppendBytes([]byte{number<<3 | 2}, make([]byte, size))
	}
	inner := bytes.Repeat([]byte{10, 0}, mostParts+1)
	for name, data := range map[string][]byte{
		"messages": inner, "bools": packed(2, mostParts+1), "map": bytes.Repeat([]byte{26, 0}, mostParts+1), "groups": bytes.Repeat([]byte{35, 36}, mostParts+1),
		"doubles": packed(5, 8*mostParts+8), "texts": bytes.Repeat([]byte{50, 0}, mostParts+1), "within": protowire.AppendBytes([]byte{10}, inner),
		"any": protowire.AppendBytes([]byte{58}, append(protowire.AppendString([]byte{10}, "/M"), protowire.AppendBytes([]byte{18}, inner)...)),
	} {
		w := text.NewWriter(16 << 20)
		_, err := s.Decode(data, []int{0}, w)
		if err == nil {
			err = w.Whole() // an Any that can't be read is shown by its bytes
		}
		if err == nil || !strings.Contains(err.Error(), "more than 500000 fields") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, data := range map[string][]byte{"bools": packed(2, mostParts-1), "one text": packed(6, 2*mostParts), "unknown": bytes.Repeat([]byte{80, 0}, mostParts+1)} {
		if _, err := s.Decode(data, []int{0}, text.NewWriter(16<<20)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The library takes the square of the time for groups within groups.
func TestBudget_BoundsTheDepth(t *testing.T) {
	t.Parallel()
	s := parsed(t, `syntax = "proto2"; message M { optional M m = 1; optional group G = 2 { optional M in = 3; } }`, nil)
	messages, groups := []byte{}, []byte{}
	for range 500 {
		messages = protowire.AppendBytes([]byte{10}, messages)
	}
	for range 40 {
		groups = protowire.AppendBytes([]byte{26}, append(append([]byte{19}, groups...), 20))
	}
	for name, data := range map[string][]byte{"messages": protowire.AppendBytes([]byte{10}, messages), "groups": append(append([]byte{19}, groups...), 20)} {
		if _, err := s.Decode(data, []int{0}, text.NewWriter(1<<20)); err == nil || !strings.Contains(err.Error(), "deeper than 500") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Decode(messages[:0], []int{0}, text.NewWriter(1<<20)); err != nil {
		t.Error(err)
	}
}
