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
