package failure

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// The texts of errors had the brokers' addresses and names, for every user who may see a topic.
func TestText_HasNoAddressesOfBrokers(t *testing.T) {
	t.Parallel()
	from, to := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 50123}, &net.TCPAddr{IP: net.IPv4(10, 9, 8, 7), Port: 9092}
	six := &net.TCPAddr{IP: net.ParseIP("fd00::7"), Port: 9092}
	for want, err := range map[string]error{
		"unable to dial: dial tcp: connection refused": fmt.Errorf("unable to dial: %w", &net.OpError{Op: "dial", Net: "tcp", Addr: to, Err: errors.New("connection refused")}),
		"read tcp: i/o timeout":                        &net.OpError{Op: "read", Net: "tcp", Source: from, Addr: to, Err: os.ErrDeadlineExceeded},
		"write tcp6: broken pipe":                      &net.OpError{Op: "write", Net: "tcp6", Source: six, Addr: six, Err: errors.New("broken pipe")},
		"dial tcp: lookup: no such host":               &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "kafka-1.internal", Server: "10.0.0.2:53"}},
		"lookup: i/o timeout":                          &net.DNSError{Err: "i/o timeout", Name: "kafka-1.internal"},
		"x509: certificate is for another name":        errors.New("x509: certificate is valid for kafka-0.internal, not kafka-1.internal"),
		"dlq: one; dlq: two":                           errors.Join(errors.New("dlq: one"), errors.New("dlq: two")),
		`topic "orders.dlq": partition 3: at 12`:       errors.New(`topic "orders.dlq": partition 3: at 12`),
	} {
		got := Text(err)
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, secret := range []string{"10.", "fd00", "9092", "internal"} {
			if strings.Contains(got, secret) {
				t.Errorf("%q has %q", got, secret)
			}
		}
	}
}
