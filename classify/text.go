package classify

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"syscall"
)

// text returns the error's message, or the empty string if its method panics.
func text(err error) (s string) {
	defer survive()
	var buf [256]byte
	if b, ok := appendDialed(buf[:0], err); ok {
		return string(b)
	}
	return err.Error()
}

// appendDialed appends err.Error() to b if package net made err, as it does for a connection that
// was refused, and if only an HTTP client wrapped it. In an outage each record fails with one, and
// its own methods take up to eleven allocations. Of other errors it may append a part.
func appendDialed(b []byte, err error) (_ []byte, ok bool) {
	switch e := err.(type) {
	case *url.Error:
		if _, ok := e.Err.(*net.OpError); ok {
			b = append(append(b, e.Op...), ' ')
			return appendDialed(append(strconv.AppendQuote(b, e.URL), ": "...), e.Err)
		}
	case *net.OpError:
		if e == nil || e.Source != nil {
			break
		}
		if _, ok := e.Err.(*os.SyscallError); ok {
			b = append(b, e.Op...)
			if e.Net != "" {
				b = append(append(b, ' '), e.Net...)
			}
			if b, ok = appendAddr(b, e.Addr); ok {
				return appendDialed(append(b, ": "...), e.Err)
			}
		}
	case *os.SyscallError:
		if e == nil {
			break
		}
		if errno, ok := e.Err.(syscall.Errno); ok {
			return append(append(append(b, e.Syscall...), ": "...), errno.Error()...), true
		}
	}
	return b, false
}

// appendAddr appends a blank and a TCP address without a zone, or nothing if there is no address.
func appendAddr(b []byte, addr net.Addr) (_ []byte, ok bool) {
	if addr == nil {
		return b, true
	}
	a, ok := addr.(*net.TCPAddr)
	if !ok || a == nil || a.Zone != "" || a.Port != int(uint16(a.Port)) {
		return b, false
	}
	ip, ok := netip.AddrFromSlice(a.IP)
	return netip.AddrPortFrom(ip.Unmap(), uint16(a.Port)).AppendTo(append(b, ' ')), ok
}
