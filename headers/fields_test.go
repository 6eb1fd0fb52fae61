package headers

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/internal/reserved"
)

func TestFields_NumbersAreDigitsInBounds(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, 1, -1, 7, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1, 1 << 40} {
		got, err := reserved.Int(strconv.FormatInt(n, 10), math.MinInt64, math.MaxInt64)
		if got != n || err != nil {
			t.Errorf("reserved.Int(%d) = %d, %v", n, got, err)
		}
	}
	for _, s := range []string{"9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", strings.Repeat("9", 100)} {
		if got, err := reserved.Int(s, math.MinInt64, math.MaxInt64); !errors.Is(err, ErrRange) || got != 0 {
			t.Errorf("reserved.Int(%s) = %d, %v; want ErrRange", s, got, err)
		}
	}
}

func TestFieldError_Reads(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  FieldError
		want string
	}{
		{FieldError{Key: Attempts, Value: "-1", Err: ErrRange}, `header dlq-attempts: "-1" is out of bounds`},
		{FieldError{Key: Group, Err: ErrMissing}, `header dlq-group: missing`},
		{FieldError{Key: hostKey, Value: "\xff", Err: ErrDuplicate}, `header dlq-host: "\xff" is duplicated`},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("Error() = %s, want %s", got, tt.want)
		}
	}
}

// The constants are what users compare with, the names of reserved what siding reads and writes.
func TestKeys_AreThoseOfReserved(t *testing.T) {
	t.Parallel()
	keys := map[reserved.Key]string{
		reserved.OriginalTopic: OriginalTopic, reserved.OriginalPartition: OriginalPartition, reserved.OriginalOffset: OriginalOffset,
		reserved.Group: Group, reserved.Attempts: Attempts, reserved.ErrorClass: ErrorClass, reserved.ErrorMessage: ErrorMessage,
		reserved.ErrorStack: ErrorStack, reserved.FailureReason: FailureReason, reserved.FailedAt: FailedAt, reserved.NotBefore: NotBefore,
		reserved.Meta: MetaFields,
	}
	for k := reserved.User + 1; k < reserved.Count; k++ {
		if (keys[k] == "") != (k.FieldName() != "") {
			t.Errorf("%s is field %q and header %q, want one of them", k, k.FieldName(), keys[k])
		} else if keys[k] != "" && keys[k] != k.String() {
			t.Errorf("%q is read and written, the constant is %q", k, keys[k])
		}
	}
}

func TestPosition_RoundTrips(t *testing.T) {
	t.Parallel()
	for _, want := range []Position{
		{Topic: "orders.dlq", Partition: 3, Offset: 12},
		{Topic: "a-b_c.D9", Partition: 1<<31 - 1, Offset: 1<<63 - 1},
		{Topic: strings.Repeat("t", 249)},
	} {
		got, err := ParsePosition(want.String())
		if err != nil || got != want {
			t.Errorf("ParsePosition(%s) = %+v, %v", want, got, err)
		}
	}
	for _, s := range []string{"", "/", "//", "t", "t/1", "t/1/", "t//1", "t/1/2/3", "t/+1/2", "./1/2", "a b/1/2", "t/2147483648/1", "t/1/9223372036854775808"} {
		if got, err := ParsePosition(s); err == nil || got != (Position{}) {
			t.Errorf("ParsePosition(%q) = %+v, %v; want an error", s, got, err)
		}
	}
}
