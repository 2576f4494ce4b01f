// Package opening is what stands between the call that asks a vendor for a machine
// and the sandbox that is handed over: whatever goes wrong there, no machine is left.
package opening

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Label tells the machine of one Open from another's of the same name.
const Label = "talkops-opening"

const (
	cleanWithin = 30 * time.Second // for looking for a machine, and for ending it
	lateWithin  = 10 * time.Second // how long one is awaited that nobody wants any more
)

// Open is Provider.Open: it attaches to spec.ID, or creates a sandbox if that is empty.
func Open[B sandbox.Sandbox](ctx context.Context, spec sandbox.Spec, create, attach func(context.Context, sandbox.Spec) (B, error)) (sandbox.Sandbox, error) {
	open := create
	if spec.ID != "" {
		open = attach
	}
	b, err := open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Destroy is Provider.Destroy: it has end end the sandbox spec.ID.
func Destroy(ctx context.Context, spec sandbox.Spec, end func(ctx context.Context, id string) error) error {
	if spec.ID == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "destroy: no sandbox id given")
	}
	return end(ctx, spec.ID)
}

// End has try, which counts from 1, end a machine. That may be refused with a status of
// busy while the machine changes state: then it is tried again until gone says that
// the machine ends, or ctx is done. Ending what is gone succeeds.
func End(ctx context.Context, try func(n int) error, gone func() bool, busy ...int) error {
	for n := 1; ; n++ {
		err := try(n)
		switch code := rest.Status(err); {
		case err == nil || code == http.StatusNotFound || code == http.StatusGone:
			return nil
		case !slices.Contains(busy, code):
			return err
		}
		if gone() {
			return nil
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return err
		}
	}
}

// A Creation asks for one machine, of which the vendor's answer tells M.
type Creation[M any] struct {
	Noun string // what the vendor calls a sandbox; empty is "sandbox"

	// Send asks for the machine until that is answered.
	Send func(ctx context.Context) (M, error)

	// Unsure reports whether there may be a machine although Send ended with err, so
	// that Made is asked. It is nil if Send has done so itself.
	Unsure func(err error) bool

	// Taken reports whether Send ended with err because there is a machine with that
	// Name, another's if Made does not know it. Nil is never.
	Taken func(err error) bool
	Name  string

	// Made returns what this creation is seen to have made, and nothing else's.
	Made func(ctx context.Context) ([]M, error)

	// ID and End are how a machine is ended. Ending what is gone succeeds.
	ID  func(M) string
	End func(ctx context.Context, id string) error

	// Every is how often Made is asked for a machine that is late; 0 is half a second.
	Every time.Duration
}

// Create asks for a machine and has ready make a sandbox of it. If that fails or ctx
// ends, no machine is left.
func Create[M, B any](ctx context.Context, c Creation[M], ready func(context.Context, M) (B, error)) (B, error) {
	var none B
	m, err := c.ask(ctx)
	if err != nil {
		return none, err
	}
	b, err := ready(ctx, m)
	if err == nil {
		return b, nil
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	if eerr := c.end(clean, m); eerr != nil {
		return none, fmt.Errorf("%w; %w", err, eerr)
	}
	return none, err
}

// Lost reports whether err leaves open what became of a request: no answer came, or
// none that counts.
func Lost(err error) bool {
	code := rest.Status(err)
	return code == 0 || code >= 500
}

// Conflict reports whether err is an answer of 409.
func Conflict(err error) bool { return rest.Status(err) == http.StatusConflict }

func (c *Creation[M]) noun() string { return cmp.Or(c.Noun, "sandbox") }

// end ends the machines.
func (c *Creation[M]) end(ctx context.Context, machines ...M) error {
	for _, m := range machines {
		if err := c.End(ctx, c.ID(m)); err != nil {
			return fmt.Errorf("%s %s could not be ended: %w", c.noun(), c.ID(m), err)
		}
	}
	return nil
}

// ask returns the machine. If it fails or ctx ends, there is none.
func (c *Creation[M]) ask(ctx context.Context) (M, error) {
	type answer struct {
		m   M
		err error
	}
	req, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan answer, 1)
	finished := make(chan struct{})
	defer func() { stop(); <-finished }()
	go func() {
		defer close(finished)
		m, err := c.Send(req)
		done <- answer{m, err}
	}()

	var none M
	select {
	case got := <-done:
		if got.err != nil {
			return c.lost(ctx, got.err)
		}
		return got.m, nil
	case <-ctx.Done():
	}

	// The machine may come into being after all: it is awaited a while, by its
	// answer or among what was made, and ended.
	ended := rest.Ended(ctx, "create "+c.noun())
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	limit := time.NewTimer(lateWithin)
	defer limit.Stop()
	look := time.NewTicker(cmp.Or(c.Every, 500*time.Millisecond))
	defer look.Stop()
	var made []M
	var err error
	for waiting := true; waiting && len(made) == 0; {
		select {
		case got := <-done:
			if waiting = false; got.err == nil {
				made = []M{got.m}
			}
		case <-look.C:
			made, _ = c.Made(late)
		case <-limit.C:
			waiting = false
		}
	}
	stop()
	<-finished
	// The request may have been under way once more when it was stopped.
	for range 2 {
		if len(made) == 0 {
			made, err = c.Made(late)
		}
		if len(made) == 0 {
			break
		}
		if err := c.end(late, made...); err != nil {
			return none, fmt.Errorf("%w; %w", ended, err)
		}
		made = nil
	}
	if err != nil {
		return none, fmt.Errorf("%w; whether there is a %s cannot be told: %w", ended, c.noun(), err)
	}
	return none, ended
}

// lost looks for the machine after Send has ended with err.
func (c *Creation[M]) lost(ctx context.Context, err error) (M, error) {
	var none M
	taken := c.Taken != nil && c.Taken(err)
	if !taken && (c.Unsure == nil || !c.Unsure(err)) {
		return none, err
	}
	find, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	if made, _ := c.Made(find); len(made) > 0 {
		return made[0], nil
	}
	if taken {
		return none, &sandbox.Error{Code: sandbox.CodeInvalidArgument, Op: "create " + c.noun(), Msg: fmt.Sprintf("the name %s is taken", c.Name), Err: err}
	}
	return none, err
}

// TellDir tells the user when the working directory is not the one that was asked for.
func TellDir(spec sandbox.Spec, dir string) {
	if spec.Dir != "" && spec.Progress != nil && !strings.HasSuffix(dir, strings.TrimSuffix(spec.Dir, "/")) {
		spec.Progress("working directory is " + rest.Clean(dir))
	}
}
