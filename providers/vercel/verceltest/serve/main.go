// Command serve runs the emulated Vercel Sandbox for a client that is no Go test:
// it prints its address, its credentials and two OIDC tokens, one of them expired,
// as one line of JSON and serves until its standard input ends.
package main

import (
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/vercel/verceltest"
)

func main() {
	s, err := verceltest.Start(verceltest.Config{StopDelay: 100 * time.Millisecond, Page: 2})
	emulate.Main(s, err, func(s *verceltest.Server) map[string]string {
		settings := s.Settings()
		return map[string]string{
			"url": s.URL(), "token": settings["token"], "team": settings["team_id"], "project": settings["project_id"],
			"oidc": s.OIDC(time.Now().Add(2 * time.Hour)), "expired": s.OIDC(time.Now().Add(-time.Hour)),
		}
	})
}
