package headers

import (
	"testing"
)

func TestFieldError_Reads(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  FieldError
		want string
	}{
		{FieldError{Key: Attempts, Value: "-1", Err: ErrRange}, `header dlq-attempts: "-1" is out of bounds`},
		{FieldError{Key: Group, Err: ErrMissing}, `header dlq-group: missing`},
		{FieldError{Key: Host, Value: "\xff", Err: ErrDuplicate}, `header dlq-host: "\xff" is duplicated`},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("Error() = %s, want %s", got, tt.want)
		}
	}
}
