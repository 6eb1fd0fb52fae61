package monitoring_test

import (
	"strings"
	"testing"
)

// A query that Prometheus would take, and that would never return anything, is refused.
func TestSeries_CheckRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	s := golden(t)
	for query, want := range map[string]string{
		`sum(siding_lane)`:              `no metric is named "siding_lane"`,
		`siding_lanes{group="billing"}`: "has no label group",
		`sum by (group) (siding_lanes)`: "has no label group",
		`sum by (siding_lane_state) (siding_lanes) > on (siding_tier) sum by (siding_tier) (siding_parked_records)`: "has no label siding_tier",
		`siding_lanes > siding_parked_records`:                                    "never match",
		`sum by (siding_within) (siding_dead_letters_open)`:                       "has no label siding_within",
		`histogram_quantile(0.9, rate(siding_delivery_lateness_seconds_sum[1m]))`: "has no label le",
		`sum(siding_lanes`: "parse error",
		`label_replace(siding_lanes, "a", "b", "c", "d")`: "what are the labels of label_replace?",
	} {
		if _, err := s.Check(query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
	for query, want := range map[string]string{
		`sum by (siding_lane_state) (siding_lanes)`:                                                             "siding_lane_state",
		`time() - min by (error_type) (siding_dead_letters_first_written_seconds)`:                              "error_type",
		`histogram_quantile(0.9, sum by (le, siding_tier) (rate(siding_delivery_lateness_seconds_bucket[1m])))`: "siding_tier",
	} {
		if of, err := s.Check(query); err != nil || len(of) != 1 || !of[want] {
			t.Errorf("%s: %v, %v", query, of, err)
		}
	}
}
