package session

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/talkops-ai/talkops/runtime/workspace"
)

// Saved is the kept work of a run.
type Saved struct {
	*workspace.Home
	Bytes int64 // that it takes on disk
	Busy  bool  // its run or its machine may still need it
}

// SavedWork are the works below dir, oldest first. A run counts as busy if busy
// says so of it.
func SavedWork(dir string, busy func(workspace.Run) bool) []Saved {
	var list []Saved
	for _, h := range Homes(dir) {
		s := Saved{Home: h, Busy: busy(h.Run)}
		filepath.WalkDir(h.Dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					s.Bytes += workspace.OnDisk(info)
				}
			}
			return nil
		})
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b Saved) int { return a.Run.Started.Compare(b.Run.Started) })
	return list
}

// An Old work is one that is past a limit.
type Old struct {
	Saved
	Why string // "it is older than 720h0m0s"
}

// Surplus are the works that are older than age, or, from the oldest on, those that
// are too many for most bytes altogether: those that may go, as they were applied,
// exported or pulled or hold nothing, and those that only the user can give up.
// What is busy counts, and stays.
func Surplus(list []Saved, age time.Duration, most int64, now time.Time) (gone, kept []Old) {
	total := int64(0)
	for _, s := range list {
		total += s.Bytes
	}
	for _, s := range list {
		why := ""
		switch {
		case s.Busy:
		case now.Sub(s.Run.Started) > age:
			why = "it is older than " + age.String()
		case total > most:
			why = "more than " + workspace.Size(most) + " is saved"
		}
		switch {
		case why == "":
		case !s.Run.Taken.IsZero(), s.Empty():
			gone = append(gone, Old{s, why})
			total -= s.Bytes
		default:
			kept = append(kept, Old{s, why})
		}
	}
	return gone, kept
}

// Sweep removes directories below dir that hold no work: of runs that were killed
// in the moment they began, or while they were removed.
func Sweep(dir string, now time.Time) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if _, err := os.Lstat(filepath.Join(name, "changes.json")); err == nil || !e.IsDir() {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > 24*time.Hour {
			os.RemoveAll(name)
		}
	}
}
