// Command serve runs the emulated Vercel Sandbox for a client that is no Go test:
// it prints its address, its credentials and two OIDC tokens, one of them expired,
// as one line of JSON and serves until its standard input ends.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/talkops-ai/talkops/providers/vercel/verceltest"
)

func main() {
	s, err := verceltest.Start(verceltest.Config{StopDelay: 100 * time.Millisecond, Page: 2})
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
	defer s.Close()
	settings := s.Settings()
	json.NewEncoder(os.Stdout).Encode(map[string]string{
		"url": s.URL(), "token": settings["token"], "team": settings["team_id"], "project": settings["project_id"],
		"oidc": s.OIDC(time.Now().Add(2 * time.Hour)), "expired": s.OIDC(time.Now().Add(-time.Hour)),
	})
	io.Copy(io.Discard, os.Stdin)
}
