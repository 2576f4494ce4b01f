package vercel

import "github.com/talkops-ai/talkops/sdk/sandbox"

// List prices of a sandbox in US dollars an hour, for a CPU while it works and for a
// GB of memory: https://vercel.com/docs/vercel-sandbox/pricing, as of November 2026.
const (
	usdPerCPU = 0.128
	usdPerGB  = 0.0212
)

// The size of a sandbox that asks for none.
const (
	defaultCPU = 2
	defaultGB  = 4
)

// Price is that of a sandbox of the default size which all new ones have, with CPUs
// that are never idle: it is at most that.
func (Provider) Price(sandbox.Spec) float64 {
	return defaultCPU*usdPerCPU + defaultGB*usdPerGB
}
