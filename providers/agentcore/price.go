package agentcore

import "github.com/talkops-ai/talkops/sdk/sandbox"

// List prices of a session in US dollars an hour, for a vCPU while it works and for a
// GB of memory that is used: https://aws.amazon.com/bedrock/agentcore/pricing, as of
// November 2026.
const (
	usdPerCPU = 0.0895
	usdPerGB  = 0.00945
)

// The size of every session.
const (
	sessionCPU = 2
	sessionGB  = 8
)

// Price is that of a session that uses all it has all the time: it is at most that.
func (Provider) Price(sandbox.Spec) float64 {
	return sessionCPU*usdPerCPU + sessionGB*usdPerGB
}
