package where

import (
	"reflect"
	"testing"
)

// A name with values needs one of them, whether it also stands alone or not.
func TestParseHeaders_ANameAloneTakesAnyValue(t *testing.T) {
	t.Parallel()
	got := ParseHeaders([]string{"region=us", "region", "k", "k=", "tenant", "formula=a=b"})
	want := map[string][]string{"region": {"us"}, "k": {""}, "tenant": nil, "formula": {"a=b"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
