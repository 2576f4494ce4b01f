//go:build wasip1

// Command e2b is a provider for E2B as a WebAssembly module: the code is that of
// providers/e2b, with its requests made by the host.
package main

import (
	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/sdk/guest"
	"github.com/talkops-ai/talkops/sdk/guest/guesthttp"
)

var (
	_ = guesthttp.Install()
	_ = guest.Serve(e2b.Provider{})
)

func main() {}
