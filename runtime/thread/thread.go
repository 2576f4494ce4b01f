// Package thread keeps conversations on disk as they happen: one file of JSON
// lines each, which is only ever added to. A conversation outlives the machine it
// worked in, and the process that was killed in the middle of it.
package thread

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/talkops-ai/talkops/runtime/model"
)

// The errors of a Store, beside those of the file system.
var (
	ErrNone   = errors.New("there is no such conversation")
	ErrInUse  = errors.New("the conversation is open in another talkops")
	ErrBroken = errors.New("the conversation cannot be read")
)

// A Store is the directory that holds conversations.
type Store struct {
	Dir string

	// Mask returns a line of JSON without secrets. It stays valid JSON. May be nil.
	Mask func(line []byte) []byte
}

// A Head says what a conversation is.
type Head struct {
	ID      string    `json:"id"`
	Project string    `json:"project"` // the directory it is about
	Started time.Time `json:"started"`
	Model   string    `json:"model,omitempty"` // "anthropic:claude-sonnet-4-6"
	Prompt  bool      `json:"headless,omitempty"`
}

// A Machine is where a conversation worked.
type Machine struct {
	Provider string    `json:"provider"` // "local": this computer
	ID       string    `json:"id,omitempty"`
	Run      string    `json:"run,omitempty"` // whose lease it is, and the name of the saved work, which has the baseline
	Work     string    `json:"work,omitempty"`
	Dir      string    `json:"dir"`
	Fresh    bool      `json:"fresh,omitempty"` // it was opened for this conversation
	Expires  time.Time `json:"expires,omitzero"`
}

// A Record is one line of the file. Exactly one of its pointers is set, or Compact.
type Record struct {
	At      time.Time       `json:"at"`
	Head    *Head           `json:"head,omitempty"`
	Machine *Machine        `json:"machine,omitempty"`
	Message *model.Message  `json:"message,omitempty"`
	Result  *model.Result   `json:"result,omitempty"` // of a call whose step is not over; its message repeats it
	Used    *Used           `json:"used,omitempty"`
	Compact []model.Message `json:"compact,omitempty"` // stands for all messages before
}

// Used is what a step of the model cost.
type Used struct {
	Usage   model.Usage `json:"usage"`
	CostUSD float64     `json:"cost_usd"`
}

// A Thread is a conversation as it was read.
type Thread struct {
	Head
	Machine  Machine // the last
	Messages []model.Message
	Usage    model.Usage // of the last step
	CostUSD  float64
	Last     time.Time // of the last line
	Lost     string    // what could not be read, in a phrase; may be empty
	Turns    int       // what the user said, also before it was made shorter
	Title    string    // what the user said first

	ended []model.Result // of a step that is not over
}

// A Writer adds to one conversation, and keeps others from doing so. It is safe
// for concurrent use. The first error of the disk is kept and returned by all later
// calls.
type Writer struct {
	Head Head

	mask func([]byte) []byte
	lock *flock.Flock
	mu   sync.Mutex
	file *os.File
	bare bool // nothing was said
	err  error
}

func (s Store) file(id string) string { return filepath.Join(s.Dir, id+".jsonl") }

// Begin starts a conversation. One in which nothing was said leaves nothing when it
// is closed.
func (s Store) Begin(h Head) (*Writer, error) {
	var b [4]byte
	rand.Read(b[:])
	h.Started = h.Started.UTC().Truncate(time.Second)
	h.ID = h.Started.Format("20060102-150405-") + hex.EncodeToString(b[:])
	w := &Writer{Head: h, mask: s.Mask, bare: true}
	if err := w.hold(s); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(s.file(h.ID), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		w.lock.Unlock()
		return nil, err
	}
	w.file = f
	return w, w.add(Record{Head: &h})
}

// hold takes the lock of the conversation.
func (w *Writer) hold(s Store) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	w.lock = flock.New(filepath.Join(s.Dir, w.Head.ID+".lock"), flock.SetPermissions(0o600))
	ok, err := w.lock.TryLock()
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: %s", ErrInUse, w.Head.ID)
	}
	return nil
}

// Resume opens a conversation to go on with it. What a crash tore off at the end of
// its file is cut away; Lost says so.
func (s Store) Resume(id string) (*Writer, *Thread, error) {
	id, err := s.Find(id)
	if err != nil {
		return nil, nil, err
	}
	w := &Writer{Head: Head{ID: id}, mask: s.Mask}
	if err := w.hold(s); err != nil {
		return nil, nil, err
	}
	t, whole, err := s.read(id)
	if err == nil {
		w.Head = t.Head
		w.file, err = os.OpenFile(s.file(id), os.O_RDWR|os.O_APPEND, 0o600)
	}
	if err == nil {
		err = w.file.Truncate(whole)
	}
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	return w, t, nil
}

// Message adds a message.
func (w *Writer) Message(m model.Message) error { return w.add(Record{Message: &m}) }

// Result adds what one call of a step came to, before the step is over.
func (w *Writer) Result(r model.Result) error { return w.add(Record{Result: &r}) }

// Machine says where the conversation works from now on.
func (w *Writer) Machine(m Machine) error { return w.add(Record{Machine: &m}) }

// Used adds what a step cost.
func (w *Writer) Used(u Used) error { return w.add(Record{Used: &u}) }

// Compact says that messages stand for all before them.
func (w *Writer) Compact(messages []model.Message) error { return w.add(Record{Compact: messages}) }

func (w *Writer) add(r Record) error {
	r.At = time.Now().UTC().Truncate(time.Millisecond)
	line, err := json.Marshal(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.file == nil {
		return fs.ErrClosed
	}
	if err == nil {
		if w.mask != nil {
			line = w.mask(line)
		}
		_, err = w.file.Write(append(bytes.ReplaceAll(line, []byte("\n"), nil), '\n'))
	}
	if err != nil {
		w.err = fmt.Errorf("keep the conversation: %w", err)
	}
	w.bare = w.bare && r.Message == nil
	return w.err
}

// Close lets go of the conversation.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return w.lock.Unlock()
	}
	err := errors.Join(w.file.Close(), w.lock.Unlock())
	w.file = nil
	if w.bare {
		err = errors.Join(err, os.Remove(strings.TrimSuffix(w.lock.Path(), ".lock")+".jsonl"), os.Remove(w.lock.Path()))
	}
	return err
}

// Find returns the whole id of a conversation from the beginning or the end of it.
func (s Store) Find(id string) (string, error) {
	ids, err := s.ids()
	if err != nil {
		return "", err
	}
	if slices.Contains(ids, id) {
		return id, nil
	}
	var found []string
	for _, x := range ids {
		if id != "" && (strings.HasPrefix(x, id) || strings.HasSuffix(x, id)) {
			found = append(found, x)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: %q", ErrNone, id)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%w: %q may be %s", ErrNone, id, strings.Join(found, " or "))
}

func (s Store) ids() ([]string, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".jsonl"); ok {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// Read reads a conversation, also one that is open elsewhere.
func (s Store) Read(id string) (*Thread, error) {
	id, err := s.Find(id)
	if err != nil {
		return nil, err
	}
	t, _, err := s.read(id)
	return t, err
}

// List reads all conversations, the one that was last used first. Those in which
// nobody said anything are left out; those that cannot be read are named in the
// error.
func (s Store) List() ([]*Thread, error) {
	ids, err := s.ids()
	var list []*Thread
	errs := []error{err}
	for _, id := range ids {
		t, _, err := s.read(id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if t.Turns > 0 {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b *Thread) int { return b.Last.Compare(a.Last) })
	return list, errors.Join(errs...)
}

// Delete removes a conversation that nobody works on.
func (s Store) Delete(id string) error {
	id, err := s.Find(id)
	if err != nil {
		return err
	}
	w := &Writer{Head: Head{ID: id}}
	if err := w.hold(s); err != nil {
		return err
	}
	err = os.Remove(s.file(id))
	return errors.Join(err, w.Close(), os.Remove(w.lock.Path()))
}

// Prune deletes the conversations that were last added to before t, but the one of
// that id and those that somebody works on. It returns the ids of what it deleted.
func (s Store) Prune(t time.Time, but string) (gone []string, err error) {
	ids, err := s.ids()
	errs := []error{err}
	for _, id := range ids {
		info, err := os.Stat(s.file(id))
		if err != nil || id == but || !info.ModTime().Before(t) {
			continue
		}
		switch err := s.Delete(id); {
		case err == nil:
			gone = append(gone, id)
		case !errors.Is(err, ErrInUse):
			errs = append(errs, err)
		}
	}
	return gone, errors.Join(errs...)
}

// InUse reports whether somebody works on a conversation.
func (s Store) InUse(id string) bool {
	w := &Writer{Head: Head{ID: id}}
	err := w.hold(s)
	if err == nil {
		w.Close()
	}
	return errors.Is(err, ErrInUse)
}
