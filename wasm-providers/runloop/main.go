//go:build wasip1

// Command runloop is the built-in Runloop provider as a WebAssembly module: the
// same code, with its requests made by the host.
package main

import (
	"github.com/talkops-ai/talkops/providers/runloop"
	"github.com/talkops-ai/talkops/sdk/guest"
	"github.com/talkops-ai/talkops/sdk/guest/guesthttp"
)

var (
	_ = guesthttp.Install()
	_ = guest.Serve(runloop.Provider{})
)

func main() {}
