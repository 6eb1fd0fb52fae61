package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func cluster(t *testing.T, opts ...kfake.Opt) string {
	t.Helper()
	return strings.Join(newCluster(t, opts...).ListenAddrs(), ",")
}

func newCluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// tokenCluster is a cluster that authenticates clients by a token: the embedded broker has no
// OAUTHBEARER of its own, so the test answers for it.
func tokenCluster(t *testing.T, token string) string {
	t.Helper()
	c := newCluster(t)
	c.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		resp.SupportedMechanisms = []string{saslOAuth}
		if req.(*kmsg.SASLHandshakeRequest).Mechanism != saslOAuth {
			resp.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		}
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		// RFC 7628
		if string(req.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes) != "n,,\x01auth=Bearer "+token+"\x01\x01" {
			resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		}
		return resp, nil, true
	})
	return strings.Join(c.ListenAddrs(), ",")
}

// unauthenticated is a cluster that answers clients that authenticate on a port without
// authentication as Kafka does; the embedded broker hangs up.
func unauthenticated(t *testing.T) string {
	t.Helper()
	c := newCluster(t)
	c.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		resp.ErrorCode = kerr.IllegalSaslState.Code
		return resp, nil, true
	})
	return strings.Join(c.ListenAddrs(), ",")
}

func reach(t *testing.T, w world) error {
	t.Helper()
	c, err := w.resolve(t)
	if err != nil {
		t.Fatal(err)
	}
	return c.Reach(t.Context())
}

func TestReach_EachWayIntoAClusterWorks(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	folder := t.TempDir()
	caFile, keyFile := write(t, filepath.Join(folder, "ca"), id.cert), write(t, filepath.Join(folder, "key"), id.key)
	pass := write(t, filepath.Join(folder, "pass"), hunter+"\n")
	server := &tls.Config{Certificates: []tls.Certificate{id.pair}}
	mutual := server.Clone()
	mutual.ClientAuth = tls.RequireAnyClientCert

	plain := cluster(t)
	encrypted := cluster(t, kfake.TLS(server))
	both := cluster(t, kfake.TLS(mutual))
	users := cluster(t, kfake.EnableSASL(), kfake.Superuser(saslPlain, "p", hunter), kfake.Superuser(saslSCRAM256, "a", hunter), kfake.Superuser(saslSCRAM512, "b", hunter))
	tokens, open := tokenCluster(t, hunter), unauthenticated(t)
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		want string // in the error; none is success
	}{
		{"plain", []string{"--brokers", plain}, nil, ""},
		{"TLS", []string{"--brokers", encrypted, "--tls-ca", caFile}, nil, ""},
		{"TLS by name", []string{"--brokers", encrypted, "--tls-ca", caFile, "--tls-server-name", "example.com"}, nil, ""},
		{"TLS unchecked", []string{"--brokers", encrypted, "--tls-insecure-skip-verify"}, nil, ""},
		{"mTLS", []string{"--brokers", both, "--tls-ca", caFile, "--tls-cert", caFile, "--tls-key", keyFile}, nil, ""},
		{"PLAIN", []string{"--brokers", users, "--sasl", "plain", "--sasl-user", "p", "--sasl-password-file", pass}, nil, ""},
		{"SCRAM-SHA-256", []string{"--brokers", users, "--sasl", "scram-sha-256", "--sasl-user", "a"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, ""},
		{"SCRAM-SHA-512", []string{"--brokers", users, "--sasl", "SCRAM-SHA-512", "--sasl-user", "b", "--sasl-password-file", pass}, nil, ""},
		{"OAUTHBEARER", []string{"--brokers", tokens, "--sasl", "OAUTHBEARER", "--sasl-token-file", pass}, nil, ""},
		{"OAUTHBEARER by variable", []string{"--brokers", tokens, "--sasl", "oauthbearer"}, map[string]string{"SIDING_SASL_TOKEN": hunter}, ""},

		{"a wrong token", []string{"--brokers", tokens, "--sasl", "oauthbearer"}, map[string]string{"SIDING_SASL_TOKEN": "hunter3"}, "the broker refuses the token by OAUTHBEARER: check --sasl-token-file or SIDING_SASL_TOKEN"},
		{"another mechanism than tokens", []string{"--brokers", tokens, "--sasl", "plain", "--sasl-user", "p"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, "choose another --sasl"},
		{"a wrong password", []string{"--brokers", users, "--sasl", "plain", "--sasl-user", "p"}, map[string]string{"SIDING_SASL_PASSWORD": "hunter3"}, "user p by PLAIN: check --sasl-user and its secret"},
		{"no user", []string{"--brokers", users}, nil, "it hung up at once; this port may want TLS (--tls) or authentication (--sasl)"},
		{"an unknown authority", []string{"--brokers", encrypted, "--tls"}, nil, "give the authority that signed its certificate by --tls-ca"},
		{"another name", []string{"--brokers", encrypted, "--tls-ca", caFile, "--tls-server-name", "db"}, nil, "use the name that its certificate is for, or give it by --tls-server-name"},
		{"no certificate", []string{"--brokers", both, "--tls-ca", caFile}, nil, "--tls-cert"},
		{"no TLS", []string{"--brokers", encrypted}, nil, "it hung up at once; this port may want TLS (--tls)"},
		{"authentication where there is none", []string{"--brokers", open, "--sasl", "plain", "--sasl-user", "p", "--sasl-password-file", pass}, nil, "this port does not authenticate clients: omit --sasl"},
		{"authentication on what hangs up", []string{"--brokers", plain, "--sasl", "plain", "--sasl-user", "p", "--sasl-password-file", pass}, nil, "check --sasl-user and its secret, or omit --sasl if that port"},
		{"authentication and TLS where there is none", []string{"--brokers", plain, "--tls", "--timeout", "500ms", "--sasl", "plain", "--sasl-user", "p", "--sasl-password-file", pass}, nil, "wants TLS (--tls) and authentication (--sasl)"},
		{"TLS where there is none", []string{"--brokers", plain, "--tls", "--timeout", "500ms"}, nil, "whether that port wants TLS (--tls)"},
		{"no mechanism of the broker", []string{"--brokers", users, "--sasl", "oauthbearer"}, map[string]string{"SIDING_SASL_TOKEN": hunter}, "choose another --sasl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := reach(t, world{args: c.args, env: c.env})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one that says %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), "hunter"):
				t.Errorf("the secret is in the message: %v", err)
			}
		})
	}
}

// mute takes connections and never answers.
func mute(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestReach_EndsInTimeWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for _, broker := range []string{mute(t), gone.Addr().String()} {
		start := time.Now()
		err := reach(t, world{args: []string{"--brokers", broker, "--timeout", "300ms"}})
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: given up after %s, want 300ms", broker, took)
		}
		if err == nil || !strings.Contains(err.Error(), "no broker can be used: tried "+broker+": ") || !strings.Contains(err.Error(), "; check --brokers") {
			t.Errorf("error %v, want one that names %s", err, broker)
		}
		refused := broker == gone.Addr().String()
		if err != nil && refused == strings.Contains(err.Error(), "waits longer") {
			t.Errorf("error %v: to wait helps only where no answer came", err)
		}
		// A refused connection took no time worth printing.
		if err != nil && refused == strings.Contains(err.Error(), "no answer came within 300ms") {
			t.Errorf("error %v: the time is that of a wait", err)
		}
	}
}

// kgo looks at its context, sets the time limit of the read, and reads. Here the context ends just
// before the limit is set, and what kgo does about that end comes first too.
func TestReach_EndsWithAContextThatEndsJustBeforeTheRead(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	c, err := world{args: []string{"--brokers", mute(t), "--timeout", "1m"}, dial: func(ctx context.Context, network, host string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, host)
		return &lateConn{Conn: conn, end: func() { cancel(interrupted) }, ended: make(chan struct{})}, err
	}}.resolve(t)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := c.Reach(ctx); !errors.Is(err, interrupted) || time.Since(start) > 50*time.Second {
		t.Errorf("it ended by %v after %s, want %q at once", err, time.Since(start), interrupted)
	}
}

// lateConn ends a context before the first time limit of a read is set.
type lateConn struct {
	net.Conn
	end   func()
	ended chan struct{} // closed when kgo sets its own
	once  sync.Once
}

func (c *lateConn) SetDeadline(at time.Time) error {
	defer close(c.ended)
	return c.Conn.SetDeadline(at)
}

func (c *lateConn) SetReadDeadline(at time.Time) error {
	c.once.Do(func() {
		c.end()
		<-c.ended
	})
	return c.Conn.SetReadDeadline(at)
}

func TestReach_TriesTheNextBroker(t *testing.T) {
	t.Parallel()
	for _, dead := range []string{"127.0.0.1:1", mute(t)} {
		start := time.Now()
		if err := reach(t, world{args: []string{"--brokers", dead + "," + cluster(t), "--timeout", "6s"}}); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took >= 6*time.Second {
			t.Errorf("%s: it took %s, want some half of 6s", dead, took)
		}
	}
}
