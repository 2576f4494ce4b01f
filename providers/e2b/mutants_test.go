package e2b_test

import (
	"context"
	"errors"
	"testing"

	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
	"github.com/talkops-ai/talkops/sdk/conform"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// faulty is the provider with one deliberate fault in a machine's life.
type faulty struct {
	e2b.Provider
	open    func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) (sandbox.Sandbox, error)
	destroy func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) error
	list    func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) ([]sandbox.Listed, error)
}

func (f faulty) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if f.open != nil {
		return f.open(ctx, f.Provider, spec)
	}
	return f.Provider.Open(ctx, spec)
}

func (f faulty) Destroy(ctx context.Context, spec sandbox.Spec) error {
	if f.destroy != nil {
		return f.destroy(ctx, f.Provider, spec)
	}
	return f.Provider.Destroy(ctx, spec)
}

func (f faulty) List(ctx context.Context, spec sandbox.Spec) ([]sandbox.Listed, error) {
	if f.list != nil {
		return f.list(ctx, f.Provider, spec)
	}
	return f.Provider.List(ctx, spec)
}

// The rules about a machine's life catch a provider that breaks them.
func TestLifeRulesCatchTheirMutants(t *testing.T) {
	newInstead := func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) (sandbox.Sandbox, error) {
		spec.ID = ""
		return p.Open(ctx, spec)
	}
	for rule, fault := range map[string]faulty{
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
		"C54": {open: func(ctx context.Context, p sandbox.Provider, spec sandbox.Spec) (sandbox.Sandbox, error) {
			spec.Env = map[string]string{"LEAK": spec.Settings["api_key"]}
			return p.Open(ctx, spec)
		}},
	} {
		t.Run(rule, func(t *testing.T) {
			srv := e2btest.New(t)
			for _, r := range conform.Rules() {
				if r.ID != rule {
					continue
				}
				var got conform.Result
				target := conform.Target{Provider: fault, Spec: sandbox.Spec{Settings: srv.Settings()}}
				conform.Run(t.Context(), target, func(res conform.Result) { got = res }, r)
				if got.Verdict != conform.Fail {
					t.Errorf("%s: %s (%s); want fail", r.Say, got.Verdict, got.Detail)
				}
			}
		})
	}
}
