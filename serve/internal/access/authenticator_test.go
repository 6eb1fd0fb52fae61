package access_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/oidc"
)

func request(remote, host string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr, r.Host = remote, host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Without access control only this machine is answered, and no page of another site that reaches it
// by a name of its own.
func TestAuthenticator_OpenAnswersThisMachineOnly(t *testing.T) {
	t.Parallel()
	a, err := access.New(nil, nil, nil, oidc.Open, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{"localhost:8642": true, "127.0.0.1:8642": true, "[::1]:8642": true, "localhost": true, "evil.example:8642": false, "10.0.0.1:8642": false, "": false} {
		if _, err := a.Who(request("127.0.0.1:5000", host)); (err == nil) != want {
			t.Errorf("host %q: %v", host, err)
		}
	}
	// A handler that was mounted on a public listener let every sender in who sent the host
	// localhost.
	for remote, want := range map[string]bool{
		"127.8.9.1:5000": true, "[::1]:5000": true, "[::ffff:127.0.0.1]:5000": true,
		"10.0.0.1:5000": false, "192.0.2.1:5000": false, "[2001:db8::1]:5000": false, "@": false, "": false, "127.0.0.1": false,
	} {
		if _, err := a.Who(request(remote, "localhost")); (err == nil) != want {
			t.Errorf("from %q: %v", remote, err)
		}
	}
	// A link on another site opens a page; a picture or a script of that site does not.
	for _, test := range []struct {
		site, dest string
		want       bool
	}{
		{"cross-site", "image", false},
		{"cross-site", "empty", false},
		{"same-site", "script", false},
		{"cross-site", "iframe", false},
		{"cross-site", "", false},
		{"cross-site", "document", true},
		{"same-origin", "empty", true},
		{"none", "document", true},
	} {
		if _, err := a.Who(request("127.0.0.1:5000", "localhost", "Sec-Fetch-Site", test.site, "Sec-Fetch-Dest", test.dest)); (err == nil) != test.want {
			t.Errorf("a %s of %s: %v", test.dest, test.site, err)
		}
	}
	// A proxy on this machine passes on what comes from elsewhere.
	for _, key := range []string{"Forwarded", "Via", "X-Forwarded-For", "x-forwarded-host", "X-Forwarded-Proto", "X-Real-IP", "CF-Connecting-IP", "X-Client-IP", "X-Forwarded-User", "X-Forwarded-Anything"} {
		for _, value := range []string{"127.0.0.1", ""} {
			if _, err := a.Who(request("127.0.0.1:5000", "localhost", key, value)); !errors.Is(err, access.ErrNobody) {
				t.Errorf("with %s %q: %v", key, value, err)
			}
		}
	}
}

// The header of a proxy counts from the proxy only.
func TestAuthenticator_ProxyIsBelievedByItsAddress(t *testing.T) {
	t.Parallel()
	a, err := access.New(nil, &access.Proxy{
		Header: "X-Forwarded-User", GroupsHeader: "X-Forwarded-Groups", From: []string{"10.0.0.0/8", "::1"},
		Groups: map[string][]access.Grant{"*": {{Role: access.Viewer}}, "payments": {{Role: access.Operator, Topics: []string{"pay*"}}}},
	}, nil, oidc.Open, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	id, err := a.Who(request("10.1.2.3:5000", "x", "X-Forwarded-User", "ada", "X-Forwarded-Groups", "dev, payments"))
	if err != nil || id.Name != "proxy ada" || id.On("pay.dlq") != access.Operator || id.On("orders.dlq") != access.Viewer {
		t.Errorf("%+v, %v", id, err)
	}
	for _, remote := range []string{"11.0.0.1:5000", "127.0.0.1:1", "[::2]:1", "junk"} {
		if id, err := a.Who(request(remote, "x", "X-Forwarded-User", "ada")); !errors.Is(err, access.ErrNobody) {
			t.Errorf("%s: %+v, %v", remote, id, err)
		}
	}
	// A proxy that adds its header to that of the client believes the client.
	twice := request("10.1.2.3:5000", "x", "X-Forwarded-User", "root")
	twice.Header.Add("X-Forwarded-User", "ada")
	if id, err := a.Who(twice); !errors.Is(err, access.ErrNobody) {
		t.Errorf("two names: %+v, %v", id, err)
	}
	// Ledgers and runs take no name of 4,096 bytes.
	if id, err := a.Who(request("10.1.2.3:5000", "x", "X-Forwarded-User", strings.Repeat("é", 501))); !errors.Is(err, access.ErrNobody) {
		t.Errorf("a name of 1,002 bytes: %+v, %v", id, err)
	}
	if id, err := a.Who(request("10.1.2.3:5000", "x", "X-Forwarded-User", strings.Repeat("é", 500))); err != nil {
		t.Errorf("a name of 1,000 bytes: %+v, %v", id, err)
	}
	if _, err := a.Who(request("[::ffff:10.1.1.1]:5", "x", "X-Forwarded-User", "ada")); err != nil {
		t.Errorf("an IPv4 address in IPv6: %v", err)
	}
}

// Behind the configured proxy, the address counts that the proxy names: the last one, since a
// client may have sent others before it. From elsewhere such a header says nothing.
func TestAuthenticator_AddressIsThatOfTheClient(t *testing.T) {
	t.Parallel()
	a, err := access.New(nil, &access.Proxy{Header: "X-User", From: []string{"10.0.0.0/8"}}, nil, oidc.Open, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ peer, header, want string }{
		{"10.1.2.3:4", "192.0.2.1, 192.0.2.2", "192.0.2.2"},
		{"10.1.2.3:4", "2001:db8::1", "2001:db8::1"},
		{"10.1.2.3:4", "192.0.2.1, somebody", "10.1.2.3"},
		{"10.1.2.3:4", "", "10.1.2.3"},
		{"192.0.2.9:4", "192.0.2.1", "192.0.2.9"},
		{"nowhere", "192.0.2.1", "nowhere"},
	} {
		if got := a.Address(request(test.peer, "x", "X-Forwarded-For", test.header)); got != test.want {
			t.Errorf("from %s with %q: %q, want %q", test.peer, test.header, got, test.want)
		}
	}
}

func TestNew_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		proxy *access.Proxy
		oidc  *access.OIDC
	}{
		"no address": {&access.Proxy{Header: "X", From: []string{"ten"}}, nil},
		"no header":  {&access.Proxy{From: []string{"10.0.0.1"}}, nil},
		"no issuer":  {nil, &access.OIDC{ClientID: "x"}},
		"no role":    {nil, &access.OIDC{Issuer: "x", ClientID: "x", Groups: map[string][]access.Grant{"a": {{}}}}},
	} {
		if _, err := access.New(nil, test.proxy, test.oidc, oidc.Open, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
