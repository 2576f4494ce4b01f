// Command serve runs the emulated LangSmith for a client that is no Go test: it
// prints its address and key as one line of JSON and serves until its standard
// input ends.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/talkops-ai/talkops/providers/langsmith/langsmithtest"
)

func main() {
	s, err := langsmithtest.Start(langsmithtest.Config{StartDelay: 200 * time.Millisecond, BuildDelay: 300 * time.Millisecond})
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
	defer s.Close()
	json.NewEncoder(os.Stdout).Encode(map[string]string{"url": s.URL(), "key": s.Key()})
	io.Copy(io.Discard, os.Stdin)
}
