package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/notify"
)

// newsOf puts the news of an incident in words. base is the URL of the server. The key is equal on
// each server.
func newsOf(base, topic, kind string, s *incident.State) notify.Message {
	title := fmt.Sprintf("[%s] %s: %s", s.Severity, topic, s.Text)
	text := "since " + s.Since.UTC().Format(time.RFC3339)
	if !s.On() {
		title = fmt.Sprintf("[over] %s: %s", topic, s.Text)
		text += ", over " + s.Over.UTC().Format(time.RFC3339)
	}
	link := strings.TrimSuffix(base, "/") + "/topics/" + url.PathEscape(topic)
	id := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", topic, kind, s.Since.UTC().Format(time.RFC3339Nano)))
	return notify.Message{Title: title, Text: text, Link: link, Key: "siding-" + hex.EncodeToString(id[:16]), Over: !s.On(), Urgent: s.Severity == incident.Page}
}
