// Command serve runs the emulated AgentCore Code Interpreter for a client that is
// no Go test: it prints its address and keys as one line of JSON and serves until
// its standard input ends.
package main

import (
	"github.com/talkops-ai/talkops/providers/agentcore/agentcoretest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func main() {
	s, err := agentcoretest.Start(agentcoretest.Config{})
	emulate.Main(s, err, func(s *agentcoretest.Server) map[string]string {
		settings := s.Settings()
		return map[string]string{
			"url": s.URL(), "key": settings["access_key_id"], "secret": settings["secret_access_key"], "region": settings["region"],
		}
	})
}
