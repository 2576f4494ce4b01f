// Command serve runs the emulated LangSmith for a client that is no Go test: it
// prints its address and key as one line of JSON and serves until its standard
// input ends.
package main

import (
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/langsmith/langsmithtest"
)

func main() {
	s, err := langsmithtest.Start(langsmithtest.Config{StartDelay: 200 * time.Millisecond, BuildDelay: 300 * time.Millisecond})
	emulate.Main(s, err, emulate.URLAndKey)
}
