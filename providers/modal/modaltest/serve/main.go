// Command serve runs the emulated Modal for a client that is no Go test: it
// prints its address and key as one line of JSON and serves until its standard
// input ends.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/talkops-ai/talkops/providers/modal/modaltest"
)

func main() {
	s, err := modaltest.Start(modaltest.Config{StartDelay: 200 * time.Millisecond})
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
	defer s.Close()
	s.Behave(modaltest.Behaviour{SlowBuild: 300 * time.Millisecond})
	settings := s.Settings()
	json.NewEncoder(os.Stdout).Encode(map[string]string{"url": s.URL(), "id": settings["token_id"], "secret": settings["token_secret"]})
	io.Copy(io.Discard, os.Stdin)
}
