package consumer

import (
	"fmt"
	"time"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// Classes of records that killed the process.
const (
	classCrashed         = "crash.handler"
	classCrashedDecoding = "crash.decode"
)

// crashError is the failure of a record that killed processes. It does not run again.
type crashError struct {
	offsets.Alone
	deaths int       // in a row, as commits have them
	by     time.Time // when the lane's owner read that the last one had died
}

// Error says what commits say, which do not distinguish a process that died from one that was
// expelled from the group. A process may also have died before its first commit.
func (e *crashError) Error() string {
	in := "its handler"
	if e.Decoding {
		in = "its decoder"
	}
	return fmt.Sprintf("at least %d processes in a row died, or lost the partition, before it was finished; the last one, by %s, while nothing but %s ran",
		e.deaths, e.by.UTC().Format("2006-01-02T15:04:05.000Z"), in)
}

// classified is the failure's result. No rule of the team's sees it.
func (e *crashError) classified() classify.Result {
	class := classCrashed
	if e.Decoding {
		class = classCrashedDecoding
	}
	var none *classify.Classifier
	return none.Classify(classify.As(classify.Terminal(e), class))
}
