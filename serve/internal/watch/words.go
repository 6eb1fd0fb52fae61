package watch

import (
	"fmt"
	"strings"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// The words of alerts.

func warn(format string, args ...any) *incident.Alert {
	return &incident.Alert{Severity: incident.Warn, Text: fmt.Sprintf(format, args...)}
}

func page(format string, args ...any) *incident.Alert {
	return &incident.Alert{Severity: incident.Page, Text: fmt.Sprintf(format, args...)}
}

// some lists names, the first ten of them.
func some(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// firstLetters says of which classes there are letters for the first time. The classes are sorted;
// an empty one stands for letters without a class.
func firstLetters(classes []string) string {
	switch without := classes[0] == ""; {
	case without && len(classes) == 1:
		return "the first letters without a class"
	case without:
		return "the first letters of " + some(classes[1:]) + ", and the first without a class"
	}
	return "the first letters of " + some(classes)
}

func letters(n int64) string { return number.Of(n, "letter") }

// aborted says that a run was aborted, and why.
func aborted(o *redrive.Outcome) string {
	how := ": " + o.Cause
	if byHand, ok := strings.CutPrefix(o.Cause, "aborted "); ok {
		how = " " + byHand
	}
	return fmt.Sprintf("run %s of %s was aborted%s", o.ID, o.By, how)
}
