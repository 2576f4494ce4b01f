package opening_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/opening"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A vendor makes machines, which are known by their names.
type vendor struct {
	there []string
	after time.Duration // how long it takes to make one
	early bool          // it is there before the answer
	err   error         // of the answer
	stuck bool          // nothing can be ended
	blind bool          // nothing is listed
	twice bool          // the request is carried out once more when its machine has ended
}

var errStuck = errors.New("it is busy")

func (v *vendor) creation(name string) opening.Creation[string] {
	var mu sync.Mutex // what is asked for comes late
	add := func() {
		mu.Lock()
		defer mu.Unlock()
		v.there = append(v.there, name)
	}
	return opening.Creation[string]{
		Name: name,
		Send: func(ctx context.Context) (string, error) {
			if v.early {
				add()
			}
			if rest.Sleep(ctx, v.after) != nil {
				return "", ctx.Err()
			}
			if !v.early && v.err == nil {
				add()
			}
			return name, v.err
		},
		Unsure: opening.Lost,
		Taken:  opening.Conflict,
		Made: func(context.Context) ([]string, error) {
			if v.blind {
				return nil, errStuck
			}
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(v.there), nil
		},
		ID: func(m string) string { return m },
		End: func(_ context.Context, id string) error {
			if v.stuck {
				return errStuck
			}
			mu.Lock()
			defer mu.Unlock()
			v.there = slices.DeleteFunc(v.there, func(m string) bool { return m == id })
			if v.twice {
				v.twice, v.there = false, append(v.there, name)
			}
			return nil
		},
	}
}

func TestCreate(t *testing.T) {
	refused := &rest.StatusError{Status: 400}
	taken := &rest.StatusError{Status: 409}
	broken := &rest.StatusError{Status: 502}
	unready := errors.New("it never started")
	for _, row := range []struct {
		name   string
		vendor vendor
		ready  error
		cancel time.Duration // when ctx ends; 0 is never
		code   sandbox.Code  // of the error; empty where there is another or none
		err    error
		says   string
		left   int
	}{
		{name: "a machine is handed over", left: 1},
		{name: "one that does not become ready is ended", ready: unready, err: unready},
		{name: "one that cannot be ended is named", ready: unready, vendor: vendor{stuck: true}, err: errStuck, says: "sandbox box could not be ended", left: 1},
		{name: "a refusal leaves nothing to look for", vendor: vendor{err: refused, blind: true}, err: refused},
		{name: "a machine whose answer was lost is taken", vendor: vendor{early: true, err: broken}, left: 1},
		{name: "what was lost and is not there is the answer's error", vendor: vendor{err: broken}, err: broken},
		{name: "the name is another's", vendor: vendor{err: taken}, code: sandbox.CodeInvalidArgument, err: taken, says: "the name box is taken"},
		{name: "a machine that comes late is ended", vendor: vendor{after: 5 * time.Second}, cancel: time.Second, code: sandbox.CodeCancelled},
		{name: "one that is there before its answer too", vendor: vendor{after: time.Hour, early: true}, cancel: time.Second, code: sandbox.CodeCancelled},
		{name: "and a second one", vendor: vendor{after: 5 * time.Second, twice: true}, cancel: time.Second, code: sandbox.CodeCancelled},
		{name: "a late one that cannot be ended is named", vendor: vendor{after: 5 * time.Second, stuck: true}, cancel: time.Second, err: errStuck, says: "sandbox box could not be ended", left: 1},
		{name: "nobody can say whether there is one", vendor: vendor{after: time.Hour, blind: true}, cancel: time.Second, err: errStuck, says: "cannot be told"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.cancel > 0 {
					time.AfterFunc(row.cancel, cancel)
				}
				v := row.vendor
				got, err := opening.Create(ctx, v.creation("box"), func(_ context.Context, m string) (string, error) { return m + " is ready", row.ready })
				if want := row.code == "" && row.err == nil; want != (err == nil) || want && got != "box is ready" {
					t.Fatalf("got %q, %v", got, err)
				}
				if row.err != nil && !errors.Is(err, row.err) || row.code != "" && sandbox.CodeOf(err) != row.code || err != nil && !strings.Contains(err.Error(), row.says) {
					t.Errorf("got %v; want code %q of %v, saying %q", err, row.code, row.err, row.says)
				}
				if len(v.there) != row.left {
					t.Errorf("%d machines are left, want %d", len(v.there), row.left)
				}
			})
		})
	}
}

func TestEnd(t *testing.T) {
	status := func(code int) error { return &rest.StatusError{Status: code} }
	for _, row := range []struct {
		name    string
		answers []error // of one try after the other
		gone    int     // after so many tries the machine ends; 0 is never
		tries   int
		err     error
	}{
		{"it ends", []error{nil}, 0, 1, nil},
		{"it is gone", []error{status(404)}, 0, 1, nil},
		{"it is busy for a while", []error{status(409), status(409), nil}, 0, 3, nil},
		{"it is busy ending", []error{status(409), status(409)}, 2, 2, nil},
		{"it may not be ended", []error{errStuck}, 0, 1, errStuck},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				err := opening.End(t.Context(), func(n int) error {
					tries = n
					return row.answers[n-1]
				}, func() bool { return tries == row.gone }, 409)
				if err != row.err || tries != row.tries {
					t.Errorf("got %v after %d tries, want %v after %d", err, tries, row.err, row.tries)
				}
			})
		})
	}
}
