// Command serve runs the emulated Modal for a client that is no Go test: it
// prints its address and key as one line of JSON and serves until its standard
// input ends.
package main

import (
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/modal/modaltest"
)

func main() {
	s, err := modaltest.Start(modaltest.Config{StartDelay: 200 * time.Millisecond})
	emulate.Main(s, err, func(s *modaltest.Server) map[string]string {
		s.Behave(modaltest.Behaviour{SlowBuild: 300 * time.Millisecond})
		settings := s.Settings()
		return map[string]string{"url": s.URL(), "id": settings["token_id"], "secret": settings["token_secret"]}
	})
}
