package access_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/oidc"
)

// The headers of a proxy have what a remote sender may have sent to it. A group counts if one of
// the names between the commas is its own, and from the proxy only; no user becomes another one.
func FuzzProxy_GroupsAreWholeNames(f *testing.F) {
	for _, groups := range []string{"", "admins", "dev, admins", "admins,", ",admins ,", "admin", "adminss", "Admins", "admins;dev", "dev\tadmins", "*", "a\x00dmins", "admins\u00a0", "\"admins\"", ",,,", "admins=x"} {
		f.Add("ada", groups)
	}
	for _, name := range []string{"", " ", "retention", "rule gateway", "token ci", "a,b", "\xff"} {
		f.Add(name, "dev")
	}
	a, err := access.New(nil, &access.Proxy{
		Header: "X-User", GroupsHeader: "X-Groups", From: []string{"10.0.0.1"},
		Groups: map[string][]access.Grant{"admins": {{Role: access.Admin}}, "*": {{Role: access.Viewer}}},
	}, nil, oidc.Open, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, groups string) {
		r := request("10.0.0.1:1", "x")
		r.Header["X-User"], r.Header["X-Groups"] = []string{name}, []string{groups}
		want := access.Viewer
		for group := range strings.SplitSeq(groups, ",") {
			if strings.TrimSpace(group) == "admins" {
				want = access.Admin
			}
		}
		id, err := a.Who(r)
		switch known := name != "" && utf8.ValidString(name); {
		case !known && !errors.Is(err, access.ErrNobody):
			t.Errorf("%q is %+v, %v", name, id, err)
		case known && (err != nil || id.Name != "proxy "+name || id.On("orders.dlq") != want):
			t.Errorf("%q of %q is %+v, %v; want the role %s", name, groups, id, err, want)
		}
		r.RemoteAddr = "10.0.0.2:1"
		if id, err := a.Who(r); !errors.Is(err, access.ErrNobody) {
			t.Errorf("%q of another peer is %+v, %v", name, id, err)
		}
	})
}
