// Command serve runs the emulated E2B for a client that is no Go test: it prints
// its address and key as one line of JSON and serves until its standard input ends.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
)

func main() {
	s, err := e2btest.Start(e2btest.Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
	defer s.Close()
	json.NewEncoder(os.Stdout).Encode(map[string]string{"url": s.URL(), "key": s.Key()})
	io.Copy(io.Discard, os.Stdin)
}
