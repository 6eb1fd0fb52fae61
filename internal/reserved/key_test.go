package reserved

import "testing"

// Two keys that shared a slot would make one of them a user's header.
func TestKey_OfFindsEachByItsText(t *testing.T) {
	t.Parallel()
	for k := User + 1; k < Count; k++ {
		if got := Of(k.String()); got != k {
			t.Errorf("%q is key %d, want %d: slot needs new factors", k, got, k)
		}
		for _, other := range []string{k.String() + "s", k.String()[1:], "dlq-x" + k.String()[4:]} {
			if got := Of(other); got != User {
				t.Errorf("%q is %q, want the user's", other, got)
			}
		}
	}
	for _, key := range []string{"", "dlq-", "dlq-mine", "traceparent", "DLQ-GROUP", User.String()} {
		if got := Of(key); got != User {
			t.Errorf("%q is %q, want the user's", key, got)
		}
	}
}
