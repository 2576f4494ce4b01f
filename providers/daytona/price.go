package daytona

import "github.com/talkops-ai/talkops/sdk/sandbox"

// List prices of a sandbox in US dollars an hour, for a vCPU and for a GiB of memory:
// https://www.daytona.io/pricing, as of November 2026. Its disk is within what costs
// nothing.
const (
	usdPerCPU = 0.0504
	usdPerGiB = 0.0162
)

// The size of a sandbox that asks for none.
const (
	defaultCPU = 1
	defaultGiB = 1
)

// Price is that of a sandbox of the default size. A snapshot has a size of its own.
func (Provider) Price(spec sandbox.Spec) float64 {
	if spec.Snapshot != "" {
		return 0
	}
	return defaultCPU*usdPerCPU + defaultGiB*usdPerGiB
}
