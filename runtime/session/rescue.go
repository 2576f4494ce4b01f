package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// rescueTimeout is how long a machine may keep silent.
const rescueTimeout = 5 * time.Minute

// Rescue brings home what still stands in the machine of a run that is no more,
// and says so on its lease. The machine is left running.
func Rescue(ctx context.Context, p sandbox.Provider, lease Lease, settings map[string]string, leases Leases, home *workspace.Home) error {
	if err := home.Resume(); err != nil {
		return fmt.Errorf("what the run began with is not on record: %w", err)
	}
	opening, cancel := context.WithTimeout(ctx, rescueTimeout)
	defer cancel()
	sb, err := p.Open(opening, sandbox.Spec{ID: lease.ID, Token: lease.Token, Settings: settings})
	if err != nil {
		return err
	}
	defer sb.Close()
	if err := whileArriving(ctx, home, rescueTimeout, func(ctx context.Context) error { return home.Bring(ctx, sb, true) }); err != nil {
		return err
	}
	// The lease goes first: a home that says that it is whole is not looked at again.
	lease.Unsaved = false
	if err := leases.Put(lease); err != nil {
		return err
	}
	return home.Finish()
}

// Homes are the directories below dir that hold the work of a run. Those that
// cannot be read are left out.
func Homes(dir string) []*workspace.Home {
	entries, _ := os.ReadDir(dir)
	var list []*workspace.Home
	for _, e := range entries {
		if h, err := workspace.OpenHome(filepath.Join(dir, e.Name())); err == nil {
			list = append(list, h)
		}
	}
	return list
}
