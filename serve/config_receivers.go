package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/sidingkafka/siding/serve/internal/alert"
	"github.com/sidingkafka/siding/serve/internal/notify"
)

// newReceivers makes the configured receivers, and returns all that is wrong with their URLs.
func newReceivers(configured []Receiver, log *slog.Logger) (all []alert.Receiver, err error) {
	for i, c := range configured {
		if (c.URLEnv == "") == (c.URLFile == "") {
			continue // the check of the configuration says so
		}
		key, from := "url-env", "variable "+c.URLEnv
		address := os.Getenv(c.URLEnv)
		if c.URLEnv != "" && address == "" {
			err = errors.Join(err, &KeyError{Key: fmt.Sprintf("notify[%d].url-env", i), Problem: fmt.Sprintf("the variable %s is not set: it has the receiver's URL", c.URLEnv)})
			continue
		}
		if c.URLFile != "" {
			key = "url-file"
			text, readErr := os.ReadFile(c.URLFile)
			if readErr != nil {
				err = errors.Join(err, &KeyError{Key: fmt.Sprintf("notify[%d].url-file", i), Problem: readErr.Error()})
				continue
			}
			address, from = strings.TrimSpace(string(text)), "file "+c.URLFile
		}
		r, urlErr := notify.New(c.Name, address, alert.MostWaiting, log)
		if urlErr != nil {
			err = errors.Join(err, &KeyError{Key: fmt.Sprintf("notify[%d].%s", i, key), Problem: fmt.Sprintf("the URL of the %s: %v", from, urlErr)})
			continue
		}
		all = append(all, alert.Receiver{Receiver: r, Name: c.Name, Topics: c.Topics, Severity: c.Severity})
	}
	return all, err
}
