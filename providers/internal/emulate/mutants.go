package emulate

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A mutant is a provider with one deliberate fault in a machine's life.
type mutant struct {
	sandbox.Provider
	open    func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) (sandbox.Sandbox, error)
	destroy func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) error
	list    func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) ([]sandbox.Listed, error)
}

// Unwrap shows what else the provider can do.
func (m mutant) Unwrap() sandbox.Provider { return m.Provider }

// Open implements sandbox.Provider.
func (m mutant) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if m.open != nil {
		return m.open(ctx, m.Provider, spec)
	}
	return m.Provider.Open(ctx, spec)
}

// Destroy implements sandbox.Provider.
func (m mutant) Destroy(ctx context.Context, spec sandbox.Spec) error {
	if m.destroy != nil {
		return m.destroy(ctx, m.Provider, spec)
	}
	return m.Provider.Destroy(ctx, spec)
}

// List implements sandbox.Lister.
func (m mutant) List(ctx context.Context, spec sandbox.Spec) ([]sandbox.Listed, error) {
	if m.list != nil {
		return m.list(ctx, m.Provider, spec)
	}
	return sandbox.List(ctx, m.Provider, spec)
}

// changed opens sandboxes that are wrapped.
func changed(wrap func(sandbox.Sandbox) sandbox.Sandbox) func(context.Context, sandbox.Provider, sandbox.Spec) (sandbox.Sandbox, error) {
	return func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) (sandbox.Sandbox, error) {
		sb, err := p.Open(ctx, spec)
		if err != nil {
			return nil, err
		}
		return wrap(sb), nil
	}
}

// hushed says nothing of files that are not permitted.
type hushed struct{ sandbox.Sandbox }

func (s hushed) ReadFile(ctx context.Context, name string, w io.Writer) error {
	if err := s.Sandbox.ReadFile(ctx, name, w); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

func (s hushed) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	if err := s.Sandbox.WriteFile(ctx, name, r, perm); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// boastful offers to move its end and then does not know how.
type boastful struct{ sandbox.Sandbox }

func (boastful) Extend(context.Context, time.Time) (time.Time, error) {
	return time.Time{}, &sandbox.Error{Code: sandbox.CodeInternal}
}

// Mutants checks that the rules about a machine's life catch a provider that breaks
// them. Secret is the setting that holds the credential; blind are the rules that
// cannot see their mutant with this vendor, with the reason.
func Mutants(t *testing.T, s Subject, secret string, blind map[string]string) {
	if testing.Short() {
		t.Skip("takes long")
	}
	newInstead := func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) (sandbox.Sandbox, error) {
		spec.ID = ""
		return p.Open(ctx, spec)
	}
	for rule, fault := range map[string]mutant{
		"C194": {open: func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) (sandbox.Sandbox, error) {
			spec.Created = nil
			return p.Open(ctx, spec)
		}},
		"C199": {open: func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) (sandbox.Sandbox, error) {
			sb, err := p.Open(context.WithoutCancel(ctx), spec)
			if ctx.Err() != nil {
				return nil, ctx.Err() // the machine stays
			}
			return sb, err
		}},
		"C207": {open: newInstead},
		"C208": {open: newInstead},
		"C217": {destroy: func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) error {
			list, err := sandbox.List(ctx, p, sandbox.Spec{Settings: spec.Settings})
			if err != nil {
				return err
			}
			for _, l := range list {
				if l.ID == spec.ID {
					return p.Destroy(ctx, spec)
				}
			}
			return sandbox.ErrNotFound
		}},
		"C219": {list: func(context.Context, sandbox.Provider, sandbox.Spec) ([]sandbox.Listed, error) { return nil, nil }},
		"C262": {open: func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) (sandbox.Sandbox, error) {
			sb, err := p.Open(ctx, spec)
			if errors.Is(err, sandbox.ErrUnauthenticated) {
				err = sandbox.ErrUnavailable
			}
			return sb, err
		}},
		"C236": {open: changed(func(sb sandbox.Sandbox) sandbox.Sandbox { return hushed{sb} })},
		"C75":  {open: changed(func(sb sandbox.Sandbox) sandbox.Sandbox { return hushed{sb} })},
		"C221": {open: changed(func(sb sandbox.Sandbox) sandbox.Sandbox { return boastful{sb} })},
		"C54": {open: func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) (sandbox.Sandbox, error) {
			spec.Env = map[string]string{"LEAK": spec.Settings[secret]}
			return p.Open(ctx, spec)
		}},
	} {
		t.Run(rule, func(t *testing.T) {
			if why, ok := blind[rule]; ok {
				t.Skip(why)
			}
			service, stop, err := s.Start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
			fault.Provider = s.Provider
			for _, r := range conform.Rules() {
				if r.ID != rule {
					continue
				}
				var got conform.Result
				target := conform.Target{Provider: fault, Spec: sandbox.Spec{Settings: service.Settings()}}
				conform.Run(t.Context(), target, func(res conform.Result) { got = res }, r)
				if got.Verdict != conform.Fail {
					t.Errorf("%s: %s (%s); want fail", r.Say, got.Verdict, got.Detail)
				}
			}
		})
	}
}
