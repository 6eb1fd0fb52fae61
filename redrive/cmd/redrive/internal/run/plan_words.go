package run

// Plans and paces in words.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// sendingTakes is how long the sending would take, and at which rate.
func sendingTakes(p *redrive.Plan, pace redrive.Pace) string {
	if pace.Rate < 0 {
		return "as long as it takes, " + rateText(pace)
	}
	return output.Duration(p.Duration(pace).Round(time.Second)) + " " + rateText(pace)
}

// rateText is the rate of a run in words.
func rateText(pace redrive.Pace) string {
	if pace.Rate < 0 {
		return "at no fixed rate"
	}
	if pace.Rate == 1 {
		return "at 1 record a second"
	}
	return fmt.Sprintf("at %g records a second", pace.Rate)
}

// targetsOf is the topics that a plan's records go to.
func targetsOf(p *redrive.Plan) string {
	return strings.Join(slices.Sorted(maps.Keys(p.Targets)), ", ")
}
