package runloop

import "github.com/talkops-ai/talkops/sdk/sandbox"

// List prices of a devbox in US dollars an hour, for a CPU and for a GiB of memory:
// https://runloop.ai/pricing, as of November 2026.
const (
	usdPerCPU = 0.108
	usdPerGiB = 0.0252
)

// The size SMALL, of a devbox that asks for none.
const (
	defaultCPU = 1
	defaultGiB = 2
)

// Price is that of a devbox of the default size. Blueprints and snapshots have a size
// of their own.
func (Provider) Price(spec sandbox.Spec) float64 {
	if spec.Snapshot != "" || spec.Settings["blueprint_id"] != "" || spec.Settings["blueprint_name"] != "" {
		return 0
	}
	return defaultCPU*usdPerCPU + defaultGiB*usdPerGiB
}
