package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// A Lease says that a machine is ours. It is on disk before the machine is asked
// for, so that no crash can leave one nobody knows of.
type Lease struct {
	Run      string        `json:"run"`      // our own id of the session; also a label at the vendor
	Provider string        `json:"provider"` //
	Name     string        `json:"name"`     // the name asked for
	ID       string        `json:"id"`       // the vendor's id; empty until it is known
	Token    string        `json:"token,omitempty"`
	Project  string        `json:"project"` // the project root it serves
	Dir      string        `json:"dir,omitempty"`
	PID      int           `json:"pid"`
	Host     string        `json:"host"`
	Created  time.Time     `json:"created"`
	Expires  time.Time     `json:"expires"`                // the latest the vendor ends it by itself; zero if it does not by the clock
	Idle     time.Duration `json:"idle_ns,omitempty"`      // the vendor stops it unused for this long; 0 if it does not
	Price    float64       `json:"usd_per_hour,omitempty"` // an estimate; 0 if that is not known
	Unsaved  bool          `json:"unsaved,omitempty"`
	Kept     bool          `json:"kept,omitempty"`
}

// Leases is the directory that holds one file for each lease.
type Leases struct{ Dir string }

func (l Leases) file(run string) string { return filepath.Join(l.Dir, run+".json") }

// Put writes a lease, whole or not at all.
func (l Leases) Put(lease Lease) error {
	data, err := json.MarshalIndent(lease, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(l.file(lease.Run), append(data, '\n'))
}

// replaceFile writes a file of ours, whole or not at all.
func replaceFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".part-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}

// Remove forgets a lease; one that is gone is no error.
func (l Leases) Remove(run string) error {
	if err := os.Remove(l.file(run)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List returns the leases, oldest first. Files that cannot be read are named in
// the error beside those that can.
func (l Leases) List() ([]Lease, error) {
	entries, err := os.ReadDir(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Lease
	var errs []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(l.Dir, e.Name()))
		var lease Lease
		if err == nil {
			err = json.Unmarshal(data, &lease)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("lease %s: %w", e.Name(), err))
			continue
		}
		list = append(list, lease)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Created.Before(list[j].Created) })
	return list, errors.Join(errs...)
}

// CostUSD estimates what the machine has cost between two times, in US dollars. After
// its end it costs nothing.
func (l Lease) CostUSD(from, until time.Time) float64 {
	if !l.Expires.IsZero() && l.Expires.Before(until) {
		until = l.Expires
	}
	return max(until.Sub(from), 0).Hours() * l.Price
}

// Ends says when the vendor ends the machine by itself: "at 2026-01-02 15:04".
func (l Lease) Ends() string {
	switch {
	case !l.Expires.IsZero():
		return "at " + l.Expires.Local().Format("2006-01-02 15:04")
	case l.Idle > 0:
		return "unused for " + strings.TrimSuffix(l.Idle.String(), "0s")
	}
	return "never"
}

// clockSlack is how much later than was asked for a machine may end.
const clockSlack = time.Hour

// endsHere is when a machine that was just made ends, by the clock of this computer,
// if the vendor's clock tells: not if that end were past already, or far behind the one
// that was asked for (which is zero if there was none).
func endsHere(now, asked, told time.Time) (end time.Time, known bool) {
	if !told.After(now) || !asked.IsZero() && told.After(asked.Add(clockSlack)) {
		return time.Time{}, false
	}
	return told, true
}
