package modal

import "github.com/talkops-ai/talkops/sdk/sandbox"

// List prices of a sandbox in US dollars an hour, for a physical core and for a GiB of
// memory, by the second: https://modal.com/pricing, as of November 2026. What is
// reserved is paid for; a command that uses more costs more.
const (
	usdPerCore = 0.00003942 * 3600
	usdPerGiB  = 0.00000672 * 3600
)

// Price is that of what every sandbox reserves, whatever it starts from.
func (Provider) Price(sandbox.Spec) float64 {
	return milliCPU/1000.0*usdPerCore + memoryMB/1024.0*usdPerGiB
}
