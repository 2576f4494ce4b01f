// Command serve runs the emulated E2B for a client that is no Go test: it prints
// its address and key as one line of JSON and serves until its standard input ends.
package main

import (
	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func main() {
	s, err := e2btest.Start(e2btest.Config{})
	emulate.Main(s, err, emulate.URLAndKey)
}
