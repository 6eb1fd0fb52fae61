package consumer

import "fmt"

// Classes of records that killed the process.
const (
	classCrashed         = "crash.handler"
	classCrashedDecoding = "crash.decode"
)

// crashError is the failure of a record that killed processes. It does not run again.
type crashError struct{ decoding bool }

func (e *crashError) Error() string {
	in := "its handler"
	if e.decoding {
		in = "its decoder"
	}
	return fmt.Sprintf("processes died again and again while they ran it, the last one while nothing but %s ran", in)
}
