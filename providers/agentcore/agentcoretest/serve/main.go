// Command serve runs the emulated AgentCore Code Interpreter for a client that is
// no Go test: it prints its address and keys as one line of JSON and serves until
// its standard input ends.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/talkops-ai/talkops/providers/agentcore/agentcoretest"
)

func main() {
	s, err := agentcoretest.Start(agentcoretest.Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
	defer s.Close()
	settings := s.Settings()
	json.NewEncoder(os.Stdout).Encode(map[string]string{
		"url": s.URL(), "key": settings["access_key_id"], "secret": settings["secret_access_key"], "region": settings["region"],
	})
	io.Copy(io.Discard, os.Stdin)
}
