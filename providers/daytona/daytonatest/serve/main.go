// Command serve runs the emulated Daytona for a client that is no Go test: it
// prints its address and key as one line of JSON and serves until its standard
// input ends.
package main

import (
	"time"

	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func main() {
	s, err := daytonatest.Start(daytonatest.Config{StartDelay: 200 * time.Millisecond, StopDelay: 100 * time.Millisecond})
	emulate.Main(s, err, emulate.URLAndKey)
}
