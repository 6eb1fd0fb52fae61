package patient

import (
	"net/http"
	"time"
)

// Writer writes the parts of an answer. A client may take its time for each part, and no longer;
// between them no limit counts. Over HTTP/2 a limit that stands ends the stream as it passes, even
// if nothing is being written then.
type Writer struct {
	to    http.ResponseWriter
	out   *http.ResponseController
	limit time.Duration
}

// New returns a writer, and lifts the limit that the answer had. Where the server has no limits,
// none counts.
func New(to http.ResponseWriter, limit time.Duration) *Writer {
	w := &Writer{to, http.NewResponseController(to), limit}
	_ = w.out.SetWriteDeadline(time.Time{})
	return w
}

// Write writes a part, which may wait for the next ones.
func (w *Writer) Write(b []byte) (int, error) {
	_ = w.out.SetWriteDeadline(time.Now().Add(w.limit))
	n, err := w.to.Write(b)
	_ = w.out.SetWriteDeadline(time.Time{})
	return n, err
}

// Send writes a part, and sends it.
func (w *Writer) Send(b []byte) error {
	_ = w.out.SetWriteDeadline(time.Now().Add(w.limit))
	_, err := w.to.Write(b)
	if err == nil {
		err = w.out.Flush()
	}
	_ = w.out.SetWriteDeadline(time.Time{})
	return err
}

// End sets the limit for what the server sends after the last part. The writer is used no more.
func (w *Writer) End() { _ = w.out.SetWriteDeadline(time.Now().Add(w.limit)) }
