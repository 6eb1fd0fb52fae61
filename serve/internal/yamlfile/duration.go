package yamlfile

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration reads a duration of package time, or a number of days.
func Duration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: as in 90s, 5m, 4h, 180d", text)
	}
	return d, nil
}

// setDuration is how the YAML library reads a duration.
func setDuration(d *time.Duration, text []byte) (err error) {
	*d, err = Duration(strings.Trim(strings.TrimSpace(string(text)), `"'`))
	return err
}
