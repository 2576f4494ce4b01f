//go:build wasip1

// Command daytona is the built-in Daytona provider as a WebAssembly module: the
// same code, with its requests made by the host.
package main

import (
	"github.com/talkops-ai/talkops/providers/daytona"
	"github.com/talkops-ai/talkops/sdk/guest"
	"github.com/talkops-ai/talkops/sdk/guest/guesthttp"
)

var (
	_ = guesthttp.Install()
	_ = guest.Serve(daytona.Provider{})
)

func main() {}
