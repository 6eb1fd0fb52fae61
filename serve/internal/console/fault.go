package console

import (
	"fmt"
	"net/http"
)

// withStatus is an error that has a status of HTTP, as those of package operate have.
type withStatus interface {
	error
	GetStatus() int
}

// pageError is an error of the console itself.
type pageError struct {
	status int
	text   string
}

func (e *pageError) Error() string  { return e.text }
func (e *pageError) GetStatus() int { return e.status }

var errNoPage = &pageError{http.StatusNotFound, "There is no such page."}

// badInput reports an address or a form that the console does not understand.
func badInput(format string, args ...any) error {
	return &pageError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}
