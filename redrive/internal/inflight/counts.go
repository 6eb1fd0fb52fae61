package inflight

import "github.com/sidingkafka/siding/dlq"

// Counts counts the letters of a run by outcome; redrive.Counts has the same fields and documents
// them.
type Counts struct {
	Selected, Sent, Succeeded, Failed int64
	FailedByClass                     map[string]int64
	Discarded, Retrying, Pending      int64
	Unknown, Unfollowed               int64
	Skipped                           map[string]int64
}

// maxClasses bounds FailedByClass, which is in each record of a run. OtherClasses counts the
// failures of all classes beyond it; no class has that name.
const (
	maxClasses   = 200
	OtherClasses = "other classes"
)

// Add counts an entry by its state.
func (c *Counts) Add(e dlq.Entry) {
	switch e.State {
	case dlq.Succeeded:
		c.Succeeded++
	case dlq.Failed:
		c.Failed++
		if c.FailedByClass == nil {
			c.FailedByClass = map[string]int64{}
		}
		class := e.Class
		if _, known := c.FailedByClass[class]; !known && len(c.FailedByClass) >= maxClasses {
			class = OtherClasses
		}
		c.FailedByClass[class]++
	case dlq.Discarded:
		c.Discarded++
	case dlq.Unknown:
		c.Unknown++
	}
}

// remove takes back the count of an outcome.
func (c *Counts) remove(state dlq.State) {
	switch state {
	case dlq.Succeeded:
		c.Succeeded--
	case dlq.Discarded:
		c.Discarded--
	case dlq.Unknown:
		c.Unknown--
	case dlq.Unfollowed:
		c.Unfollowed--
	}
}

// AddSkipped counts a skipped letter by its reason.
func (c *Counts) AddSkipped(why string) {
	if c.Skipped == nil {
		c.Skipped = map[string]int64{}
	}
	c.Skipped[why]++
}
