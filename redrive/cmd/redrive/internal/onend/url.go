package onend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// most is how much of an answer is read, so that its connection ends in order.
const most = 64 << 10

func (t Target) post(ctx context.Context, c Call) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url.String(), bytes.NewReader(c.Body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	// another host must not get the report, and a redirect makes a GET of a POST
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err // the wrapper prints the whole URL
	} else if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, most)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("it answered %s", resp.Status)
	}
	return nil
}
