package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// ErrAddress means that an address is not one of the public internet.
var ErrAddress = errors.New("not an address of the public internet")

// special are the ranges inside the global ones that lead elsewhere: shared and
// reserved networks, documentation, tunnels that carry another address inside,
// and the address at which a cloud answers its machines.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"),
}

// global is where public IPv6 addresses are.
var global = netip.MustParsePrefix("2000::/3")

// Public returns nil for an address of the public internet, and an ErrAddress for
// every other: this computer, private and link-local networks, multicast, the
// metadata services of clouds, and IPv6 forms of those.
func Public(addr netip.Addr) error {
	a := addr.Unmap()
	ok := a.IsValid() && a.Zone() == "" && a.IsGlobalUnicast() && !a.IsPrivate() && (a.Is4() || global.Contains(a))
	for _, p := range special {
		ok = ok && !p.Contains(a)
	}
	if !ok {
		return fmt.Errorf("%s is %w", addr, ErrAddress)
	}
	return nil
}

// newDialer returns a dialler that connects to addresses that check accepts. The
// address is looked at when it is dialled, after names are resolved, so neither a name
// that changes what it stands for nor a redirect can lead past it.
func newDialer(check func(netip.Addr) error) *net.Dialer {
	return &net.Dialer{
		Timeout: 10 * time.Second,
		Control: func(network, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || network != "tcp4" && network != "tcp6" {
				return fmt.Errorf("%s is %w", address, ErrAddress)
			}
			return check(at.Addr())
		},
	}
}

// newClient returns a client that connects by the dialler. It follows no redirects,
// keeps no cookies and uses no proxy.
func newClient(dialer *net.Dialer) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  20 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      true,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
