package serve

import (
	"fmt"
	"strings"
	"testing"
)

// A link of the configuration is one that a person may follow, and no text breaks a message.
func TestCheckTexts_RefusesWhatPeopleCannotRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1_001)
	for _, c := range []struct {
		of   Topic
		want string
	}{
		{Topic{}, ""},
		{Topic{Owner: "Team Größe (billing)", Runbook: "https://wiki.example.com/a?b=c#d", Note: "call ops, not the bank"}, ""},
		{Topic{Runbook: "http://[::1]:80/x"}, ""},
		{Topic{Runbook: "javascript:alert(1)"}, "runbook: "},
		{Topic{Runbook: "//wiki/x"}, "runbook: "},
		{Topic{Runbook: "wiki.example.com/x"}, "runbook: "},
		{Topic{Runbook: "https://"}, "runbook: "},
		{Topic{Runbook: "https://anna:secret@wiki"}, "runbook: "},
		{Topic{Runbook: "https://wiki/a b"}, "runbook: "},
		{Topic{Runbook: "https://wiki/" + long}, "runbook: it has 1014 bytes"},
		{Topic{Owner: long[:201]}, "owner: it has 201 bytes"},
		{Topic{Note: long[:501]}, "note: it has 501 bytes"},
		{Topic{Note: "two\nlines"}, "note: "},
		{Topic{Owner: "\x1b[31mred"}, "owner: "},
		{Topic{Owner: "\xff"}, "owner: "},
	} {
		got := ""
		checkTexts(&c.of, func(key, format string, args ...any) { got += key + ": " + fmt.Sprintf(format, args...) })
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.of, got, c.want)
		}
	}
}
