// Command serve runs the emulated Runloop for a client that is no Go test: it
// prints its address and key as one line of JSON and serves until its standard
// input ends.
package main

import (
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/runloop/runlooptest"
)

func main() {
	s, err := runlooptest.Start(runlooptest.Config{StartDelay: 200 * time.Millisecond, StopDelay: 100 * time.Millisecond})
	emulate.Main(s, err, emulate.URLAndKey)
}
