package cmd

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

// A receipt says what left this computer in a run and what came back. A nil one
// notes nothing.
type receipt struct {
	file string
	cfg  *config.Config

	mu      sync.Mutex // of what follows
	doc     receiptDoc
	box     *box
	sent    bool   // the upload is over
	dir     string // where changes are brought home to
	home    *workspace.Home
	hosts   map[string]bool
	written bool
}

// A receiptDoc is the file.
type receiptDoc struct {
	Receipt int               `json:"receipt"` // version of this form
	Talkops string            `json:"talkops"`
	Started time.Time         `json:"started"`
	Ended   time.Time         `json:"ended"`
	Project string            `json:"project"`
	Code    int               `json:"code"` // the exit code
	Reason  string            `json:"reason"`
	Sandbox *headless.Sandbox `json:"sandbox,omitempty"` // absent if none was wanted; its id is empty if it could not be used
	Sent    sentDoc           `json:"sent"`
	Back    backDoc           `json:"back"`
}

type sentDoc struct {
	Files     []workspace.Record `json:"files"`
	Bytes     int64              `json:"bytes"`               // of the files
	Uncertain bool               `json:"uncertain,omitempty"` // broken off while it was sent: some of the files may not have left
	Setup     *setupDoc          `json:"setup,omitempty"`
	Variables []string           `json:"variables"` // names of those passed into the sandbox
	Hosts     []string           `json:"hosts"`     // host:port of every request made from this computer
}

type setupDoc struct {
	Name   string `json:"name"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
}

type backDoc struct {
	Files []workspace.Record `json:"files"`
	Work  *headless.Work     `json:"work,omitempty"` // where they are
}

const receiptVersion = 1

// withReceipt does a run and writes its receipt, if one is wanted, however the run
// ends. A file that is no receipt is not replaced; an earlier receipt is removed
// first, so that none can be taken for that of this run.
func (a *app) withReceipt(ctx context.Context, cfg *config.Config, f runFlags, run func(context.Context, runFlags) error) error {
	if f.receipt == "" {
		return run(ctx, f)
	}
	r := &receipt{file: a.absolute(f.receipt), cfg: cfg, hosts: map[string]bool{}}
	r.doc = receiptDoc{Receipt: receiptVersion, Talkops: version, Started: time.Now().UTC(), Project: cfg.Root}
	if err := r.makeRoom(); err != nil {
		return &usageError{"--receipt: " + err.Error()}
	}
	f.slip = r
	if a.slip != nil {
		a.slip.Store(r)
	}
	// Requests tell the trace of their context whom they go to.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: r.spokeTo})
	err := run(ctx, f)
	if werr := r.write(ended(ctx, err), false); werr != nil {
		werr = fmt.Errorf("the receipt was not written: %w", werr)
		if err == nil {
			return werr
		}
		a.complain([]string{werr.Error()})
	}
	return err
}

// leaveReceipt writes the receipt of a run that is broken off by err, with what is
// known by now. It waits a moment at most.
func (a *app) leaveReceipt(err error) {
	r := a.slip.Load()
	if r == nil {
		return
	}
	done := make(chan error, 1)
	go func() { done <- r.write(err, true) }()
	select {
	case werr := <-done:
		if werr == nil {
			return
		}
		fmt.Fprintln(a.streams.Err, "talkops: the receipt was not written:", term.Clean(werr.Error()))
	case <-time.After(3 * time.Second):
		fmt.Fprintln(a.streams.Err, "talkops: the receipt was not written in time")
	}
}

func (r *receipt) makeRoom() error {
	info, err := os.Lstat(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		dir, err := os.Stat(filepath.Dir(r.file))
		if err != nil || !dir.IsDir() {
			return fmt.Errorf("there is no directory %s", filepath.Dir(r.file))
		}
		return nil
	}
	if err != nil {
		return err
	}
	var old receiptDoc
	if info.Mode().IsRegular() {
		data, err := os.ReadFile(r.file)
		if err != nil {
			return err
		}
		if json.Unmarshal(data, &old) == nil && old.Receipt > 0 {
			return os.Remove(r.file)
		}
	}
	return fmt.Errorf("%s exists and is no receipt; name another file", r.file)
}

func (r *receipt) spokeTo(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hosts[host] = true
}

// opening notes what is about to be sent.
func (r *receipt) opening(b *box) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.box = b
	r.doc.Sandbox = &headless.Sandbox{Provider: b.opts.Provider.Describe().Name}
}

// opened notes that all was sent, and where.
func (r *receipt) opened(s *session.Session) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	info := s.Sandbox.Info()
	r.doc.Sandbox = &headless.Sandbox{Provider: info.Provider, ID: info.ID, Dir: s.Dir}
	r.sent = true
	if h := s.Home(); h != nil {
		r.dir = h.Dir
	}
}

// outcome notes how a run without a person ended.
func (r *receipt) outcome(code int, reason string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doc.Code, r.doc.Reason = code, reason
}

// ended notes where a run worked and what came back.
func (r *receipt) ended(s *session.Session, work *headless.Work) {
	if r == nil {
		return
	}
	r.opened(s) // a conversation may have gone on elsewhere
	r.mu.Lock()
	defer r.mu.Unlock()
	r.home, r.doc.Back.Work = s.Home(), work
}

// write writes the receipt of a run that ended with err, whole or not at all, unless
// it is written already. Broken says that the run itself still goes on.
func (r *receipt) write(err error, broken bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written {
		return nil
	}
	d := &r.doc
	d.Ended = time.Now().UTC()
	if d.Reason == "" {
		d.Code, d.Reason = classify(err)
	}
	if r.home == nil && r.dir != "" {
		// Broken off: what came home by then is on disk.
		r.home, _ = workspace.OpenHome(r.dir)
	}
	d.Sent.Files, d.Sent.Variables, d.Back.Files = []workspace.Record{}, []string{}, r.home.Records()
	if r.box != nil && !r.box.host {
		opts := r.box.opts
		if d.Sent.Uncertain = broken && !r.sent; d.Sent.Uncertain {
			d.Sent.Files = opts.Plan.Planned()
		} else {
			d.Sent.Files = opts.Plan.Records()
		}
		for name := range opts.Spec.Env {
			d.Sent.Variables = append(d.Sent.Variables, name)
		}
		slices.Sort(d.Sent.Variables)
		if text := opts.Setup; len(text) > 0 {
			d.Sent.Setup = &setupDoc{opts.SetupName, len(text), fmt.Sprintf("%x", sha256.Sum256(text))}
		}
	}
	for _, f := range d.Sent.Files {
		d.Sent.Bytes += f.Size
	}
	d.Sent.Hosts = []string{}
	for host := range r.hosts {
		d.Sent.Hosts = append(d.Sent.Hosts, host)
	}
	slices.Sort(d.Sent.Hosts)
	data, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(r.file), ".talkops-receipt-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(data, '\n'))
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	r.written = true
	return os.Rename(tmp.Name(), r.file)
}
