package classify

import (
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Fingerprints, rules by text and dead letters need the text that Error returns. A new version of
// Go may change it; then this test fails.
func TestText_IsThatOfError(t *testing.T) {
	t.Parallel()
	v4, v6 := net.IPv4(10, 0, 0, 7), net.ParseIP("2001:db8::7")
	addrs := []net.Addr{
		nil,
		&net.TCPAddr{IP: v4, Port: 8080},
		&net.TCPAddr{IP: v4.To4()},
		&net.TCPAddr{IP: v6, Port: 443},
		&net.TCPAddr{IP: net.IPv6zero, Port: 65_536},
		&net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 1, Zone: "eth0"},
		&net.TCPAddr{IP: v4, Port: -1, Zone: "eth0"},
		&net.TCPAddr{Port: 80},
		&net.TCPAddr{IP: net.IP("short")},
		(*net.TCPAddr)(nil),
		&net.UDPAddr{IP: v4, Port: 53},
		&net.UnixAddr{Name: "/run/x.sock", Net: "unix"},
	}
	all := []error{
		errBare,
		hostile{},
		(*net.OpError)(nil), (*os.SyscallError)(nil), (*url.Error)(nil),
		syscall.ECONNREFUSED, syscall.Errno(9999), os.ErrDeadlineExceeded, nil,
	}
	for _, err := range all[:len(all):len(all)] {
		all = append(all, &os.SyscallError{Syscall: "connect", Err: err})
	}
	for _, err := range all[:len(all):len(all)] {
		for _, addr := range addrs {
			all = append(all,
				&net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: err},
				&net.OpError{Op: "read", Source: addr, Addr: addrs[1], Err: err})
		}
	}
	for _, err := range all[:len(all):len(all)] {
		all = append(all,
			&url.Error{Op: "Get", URL: "http://shop/\"\x00\xff ü?" + strings.Repeat("x", 300), Err: err},
			errors.Join(errBare, err))
	}
	own := func(err error) (s string) {
		defer survive()
		return err.Error()
	}
	for _, err := range all {
		if got, want := text(err), own(err); got != want {
			t.Errorf("%T: got %q, want %q", err, got, want)
		}
	}
}
