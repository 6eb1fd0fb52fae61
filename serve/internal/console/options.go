package console

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/api"
)

// option is a field of the form with which a run is planned.
type option struct {
	Name, Label, Value, Default, Hint string
	read                              func(text string, o *api.RunOptions) error
}

// none is what people type for no limit, no canary and the like.
const none = "none"

// runOptions are what people can choose for a run; the API has more.
var runOptions = []option{
	{Name: "rate", Label: "Letters a second", Default: "50", Hint: "none has no limit", read: func(text string, o *api.RunOptions) (err error) {
		o.Pace.Rate = -1
		if text != none {
			o.Pace.Rate, err = strconv.ParseFloat(text, 64)
		}
		return within(err, o.Pace.Rate == -1 && text == none || o.Pace.Rate > 0 && o.Pace.Rate <= 1e6, "a number above 0, as in 50, or none")
	}},
	{Name: "canary", Label: "First letters, awaited", Default: "1", Hint: "none sends all at once", read: func(text string, o *api.RunOptions) (err error) {
		o.Pace.Canary, err = numberOrNone(text)
		return err
	}},
	{Name: "ramp", Label: "Ramp", Default: "30s", Hint: "from a tenth of the rate to all of it", read: func(text string, o *api.RunOptions) (err error) {
		o.Pace.RampMs, err = spanOrNone(text)
		return err
	}},
	{Name: "window", Label: "Window", Default: "30s", Hint: "watched after the last letter", read: func(text string, o *api.RunOptions) (err error) {
		o.Pace.WindowMs, err = spanOrNone(text)
		return err
	}},
	{Name: "tolerate", Label: "Failures tolerated", Default: "none", Hint: "the next one ends the run", read: func(text string, o *api.RunOptions) (err error) {
		o.Pace.Tolerate, err = numberOrNone(text)
		return err
	}},
	{Name: "redrives", Label: "Redrives of a record", Default: "3", Hint: "over all runs; none has no limit", read: func(text string, o *api.RunOptions) (err error) {
		o.MaxRedrives, err = numberOrNone(text)
		return err
	}},
	{Name: "to", Label: "Another target topic", Default: "first retry topic", Hint: "all groups that read it see the records", read: func(text string, o *api.RunOptions) error {
		o.Target.Topic = text
		return within(nil, len(text) <= 249, "the name of a topic")
	}},
}

func within(err error, ok bool, allowed string) error {
	if err != nil || !ok {
		return badInput("%s", allowed)
	}
	return nil
}

// numberOrNone reads a number from 1 on; none is -1.
func numberOrNone(text string) (int, error) {
	if text == none || text == "0" {
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), within(err, n > 0, "a whole number, or none")
}

// spanOrNone reads a duration in milliseconds; none is -1.
func spanOrNone(text string) (int64, error) {
	if text == none || text == "0" {
		return -1, nil
	}
	d, err := time.ParseDuration(text)
	return d.Milliseconds(), within(err, d >= time.Millisecond && d <= 24*time.Hour, "a time, as in 30s or 5m, or none")
}

// optionsOf reads the options of a run. fields have those that were chosen, and all is the form to
// choose again.
func optionsOf(q url.Values) (o api.RunOptions, fields []field, all []option, err error) {
	all = slices.Clone(runOptions)
	for i := range all {
		text := strings.TrimSpace(q.Get(all[i].Name))
		if all[i].Value = text; text == "" || err != nil {
			continue
		}
		if wrong := all[i].read(text, &o); wrong != nil {
			err = badInput("%s: %q is not %s", all[i].Label, text, wrong)
		}
		fields = append(fields, field{all[i].Name, text})
	}
	return o, fields, all, err
}

// expected reads a number of letters that the operator typed or confirmed.
func expected(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimSpace(text), ",", ""), 10, 64)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0, badInput("%q is not the number of letters: nothing was done. Type it as the page shows it.", text)
	}
	return n, nil
}
