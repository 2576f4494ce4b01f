// Package machine is a small computer for emulators of sandbox services: a
// private directory tree and real processes in it. It keeps the processes of one
// emulated sandbox together so that they can be ended together; it is no
// security boundary.
package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrClosed is what Start returns after Close.
var ErrClosed = errors.New("the machine is closed")

// A Machine is one private tree and the processes started in it. It is safe for
// concurrent use.
type Machine struct {
	root string

	mu      sync.Mutex
	closed  bool
	running map[*Running]bool
}

// A Process is a program to start. The zero value of every field but Args is
// useful.
type Process struct {
	Args []string // the program, looked up in the machine's PATH, and its arguments
	Dir  string   // absolute; empty is the machine's Dir
	Env  []string // "name=value", added to the machine's own environment; the last of a name wins

	Stdin  io.Reader // nil is empty
	Stdout io.Writer // nil discards; an *os.File is handed to the process itself
	Stderr io.Writer // nil discards; an *os.File is handed to the process itself
}

// New makes a machine whose tree is a new directory below dir; empty is the
// system's directory for temporary files. Where talkops runs as root the tree
// and the processes belong to an unprivileged user, so every directory above
// dir must be open to all.
func New(dir string) (*Machine, error) {
	if !supported {
		return nil, fmt.Errorf("machine: not supported on this system: %w", errors.ErrUnsupported)
	}
	root, err := os.MkdirTemp(dir, "machine-")
	if err != nil {
		return nil, err
	}
	root, err = filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	m := &Machine{root: root, running: make(map[*Running]bool)}
	for _, name := range []string{m.Dir(), m.Temp()} {
		if err := os.Mkdir(name, 0o755); err != nil {
			return nil, errors.Join(err, os.RemoveAll(root))
		}
	}
	for _, name := range []string{root, m.Dir(), m.Temp()} {
		if err := m.Own(name); err != nil {
			return nil, errors.Join(err, os.RemoveAll(root))
		}
	}
	return m, nil
}

// Root returns the directory that holds everything the machine has.
func (m *Machine) Root() string { return m.root }

// Dir returns the working and home directory, as processes see it.
func (m *Machine) Dir() string { return filepath.Join(m.root, "home") }

// Temp returns the directory for temporary files, as processes see it.
func (m *Machine) Temp() string { return filepath.Join(m.root, "tmp") }

// Env returns the environment every process gets. Nothing of the host's is in it.
func (m *Machine) Env() []string {
	return []string{
		"PATH=" + path,
		"HOME=" + m.Dir(),
		"TMPDIR=" + m.Temp(),
		"LANG=C.UTF-8",
	}
}

// Path returns name, absolute or relative to Dir, cleaned. A name that leads out
// of the machine's tree, by itself or through links, is fs.ErrPermission. The
// file itself need not exist.
func (m *Machine) Path(name string) (string, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(m.Dir(), name)
	}
	name = filepath.Clean(name)
	refused := &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	if !m.holds(name) {
		return "", refused
	}
	// The longest part that exists decides where the rest will be.
	for at := name; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			if !m.holds(real) {
				return "", refused
			}
			return name, nil
		}
		if at == m.root || at == filepath.Dir(at) {
			return "", refused
		}
	}
}

// Own gives the file name to the user the machine's processes run as.
func (m *Machine) Own(name string) error { return own(name) }

func (m *Machine) holds(name string) bool {
	return name == m.root || strings.HasPrefix(name, m.root+string(filepath.Separator))
}

// Start starts p in a session of its own.
func (m *Machine) Start(p Process) (*Running, error) {
	if len(p.Args) == 0 {
		return nil, errors.New("machine: no program given")
	}
	if p.Dir == "" {
		p.Dir = m.Dir()
	}
	p.Env = append(m.Env(), p.Env...)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	r, err := start(p)
	if err != nil {
		return nil, err
	}
	m.running[r] = true
	go func() {
		<-r.done
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.closed {
			delete(m.running, r)
		}
	}()
	return r, nil
}

// Close ends every process that was started and removes the tree. Closing twice
// is fine.
func (m *Machine) Close() error {
	m.mu.Lock()
	m.closed = true
	running := slices.Collect(maps.Keys(m.running))
	clear(m.running)
	m.mu.Unlock()
	var wg sync.WaitGroup
	for _, r := range running {
		wg.Go(func() { r.Kill(0) })
	}
	wg.Wait()
	killStrays("HOME=" + m.Dir())
	// A process that is just ending may still add a file.
	var err error
	for range 5 {
		if err = removeAll(m.root); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// removeAll removes a tree in which directories may lack write permission.
func removeAll(root string) error {
	if err := os.RemoveAll(root); err == nil {
		return nil
	}
	filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(root)
}
