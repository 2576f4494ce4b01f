package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/workspace"
)

func TestSurplus(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	work := func(id string, days int, bytes int64, taken, busy, empty bool) Saved {
		h := &workspace.Home{Run: workspace.Run{ID: id, Started: now.AddDate(0, 0, -days)}}
		if taken {
			h.Run.Taken = now
		}
		if !empty {
			h.Changes = []workspace.Change{{Name: "f"}}
		}
		return Saved{h, bytes, busy}
	}
	names := func(list []Old) string {
		var ids []string
		for _, o := range list {
			ids = append(ids, o.Run.ID)
		}
		return strings.Join(ids, " ")
	}
	for _, row := range []struct {
		name       string
		list       []Saved
		gone, kept string
	}{
		{"what is young and small stays", []Saved{work("a", 29, 10, true, false, false)}, "", ""},
		{"what is old and applied goes", []Saved{work("a", 31, 1, true, false, false)}, "a", ""},
		{"what is old and nobody took is only told", []Saved{work("a", 31, 1, false, false, false)}, "", "a"},
		{"what is old and empty goes", []Saved{work("a", 31, 1, false, false, true)}, "a", ""},
		{"what is in use stays", []Saved{work("a", 31, 500, true, true, false)}, "", ""},
		{"the oldest go until the rest is few enough", []Saved{work("a", 3, 60, true, false, false), work("b", 2, 60, true, false, false), work("c", 1, 60, true, false, false)}, "a b", ""},
		{"what nobody took still fills the room", []Saved{work("a", 3, 90, false, false, false), work("b", 2, 60, true, false, false), work("c", 1, 5, true, false, false)}, "b", "a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			gone, kept := Surplus(row.list, 30*24*time.Hour, 100, now)
			if names(gone) != row.gone || names(kept) != row.kept {
				t.Errorf("%q go and %q are told, want %q and %q", names(gone), names(kept), row.gone, row.kept)
			}
		})
	}
}

func TestSweepTakesOnlyWhatHoldsNoWork(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"killed/content/x", "work/changes.json", "young/content/x"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o644)
	}
	then := time.Now().Add(-48 * time.Hour)
	os.Chtimes(filepath.Join(dir, "killed"), then, then)
	os.Chtimes(filepath.Join(dir, "work"), then, then)
	Sweep(dir, time.Now())
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 2 || filepath.Base(left[0]) != "work" || filepath.Base(left[1]) != "young" {
		t.Errorf("left are %q", left)
	}
}

// Holes of saved files take no room, and are not counted.
func TestSavedWorkCountsWhatItTakesOnDisk(t *testing.T) {
	dir := t.TempDir()
	h, err := workspace.NewHome(filepath.Join(dir, "a"), workspace.Run{ID: "a"}, "/", nil, &workspace.Listing{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.Dir, "content", "f")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 1<<30); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if workspace.OnDisk(info) == info.Size() {
		t.Skip("this file system has no holes, or does not tell")
	}
	if list := SavedWork(dir, func(workspace.Run) bool { return false }); len(list) != 1 || list[0].Bytes <= 0 || list[0].Bytes > 1<<20 {
		t.Errorf("got %+v", list)
	}
}
