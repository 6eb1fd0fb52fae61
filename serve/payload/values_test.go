package payload

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestValuesOf_AreThoseOfTheCodec(t *testing.T) {
	t.Parallel()
	if ValuesOf(nil) != nil {
		t.Error("there are values without a codec")
	}
	v := ValuesOf(codec{"a": "1", "b": ""})
	for value, want := range map[string]string{"a": "1", "b": "", "plain": ""} {
		got, err := v.DecodeValue(t.Context(), &kgo.Record{Value: []byte(value)})
		if string(got) != want || (got == nil) != (want == "") || (err != nil) != (value == "b") {
			t.Errorf("%s: %s, %v", value, got, err)
		}
	}
}
