package dlq

import "strings"

// scanEntry reads the JSON of an entry that stands there as [Entry.Record] writes it, without edits and without a text that JSON has to
// escape: nearly every entry of a ledger of millions, at a tenth of what encoding/json takes. ok is false for all others, also for those
// that mean the same.
func scanEntry(s string) (j entryJSON, ok bool) {
	v := 1
	if s, ok = strings.CutPrefix(s, `{"v":1,`); !ok {
		v = 2
		if s, ok = strings.CutPrefix(s, `{"v":2,`); !ok {
			return j, false
		}
	}
	for _, f := range [...]struct {
		name string
		to   *string
	}{
		{`"topicId":"`, &j.TopicID},
		{`"state":"`, (*string)(&j.State)},
		{`"run":"`, &j.Run},
		{`"at":"`, &j.At},
		{`"since":"`, &j.Since},
		{`"by":"`, &j.By},
		{`"why":"`, &j.Why},
		{`"target":"`, &j.Target},
		{`"class":"`, &j.Class},
	} {
		rest, found := strings.CutPrefix(s, f.name)
		if !found {
			continue
		}
		end := strings.IndexByte(rest, '"')
		if end < 0 || end+1 == len(rest) || !plain(rest[:end]) {
			return j, false
		}
		*f.to = rest[:end]
		switch s = rest[end+1:]; {
		case s == "}":
			j.V = v
			return j, true
		case s[0] != ',':
			return j, false
		}
		s = s[1:]
	}
	return j, false
}
