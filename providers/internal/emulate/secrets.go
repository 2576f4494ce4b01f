package emulate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Secrets runs every operation of the contract while one of its requests is refused
// in words that repeat what signed it in, and checks that nothing that is shown
// has so much as a part of that.
func Secrets(t *testing.T, s Subject) {
	t.Helper()
	if testing.Short() {
		t.Skip("every refusal of every request takes a while")
	}
	service, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	var secrets []string
	for _, d := range s.Provider.Describe().Settings {
		if value := service.Settings()[d.Key]; d.Secret && value != "" {
			secrets = append(secrets, value)
		}
	}
	stop()
	var wg sync.WaitGroup
	gate := make(chan struct{}, atOnce)
	for _, op := range operations() {
		requests, failures := s.one(op, nil, nil)
		if len(failures) > 0 {
			t.Errorf("%s without a fault: %s", op.name, strings.Join(failures, "; "))
		}
		for _, request := range requests {
			for _, secret := range secrets {
				// The text is cut somewhere in the secret.
				words := strings.Repeat("x", max(0, 500-len(secret)*4/5)) + secret + " in your headers"
				for status, body := range map[int]string{
					401: words,
					403: `{"message":"` + words + `"}`,
					500: `{"detail":{"error":"` + secret + `","message":"` + words + `"}}`,
				} {
					wg.Go(func() {
						gate <- struct{}{}
						defer func() { <-gate }()
						shown, err := s.shown(op, Fault{Op: request, Times: -1, Status: status, Body: body})
						if err != nil {
							t.Error(err)
						}
						if i := strings.Index(shown, secret[:len(secret)*2/3]); i >= 0 {
							t.Errorf("%s, %s refused with %d: a secret is shown: %s", op.name, request, status, shown[max(0, i-80):])
						}
					})
				}
			}
		}
	}
	wg.Wait()
}

// shown runs op once under fault and returns all that a user may see of it.
func (s Subject) shown(op operation, fault Fault) (string, error) {
	service, stop, err := s.Start()
	if err != nil {
		return "", err
	}
	defer stop()
	var mu sync.Mutex
	var shown []string
	show := func(what any) {
		mu.Lock()
		defer mu.Unlock()
		shown = append(shown, fmt.Sprint(what))
	}
	b := &bench{Subject: s, service: service}
	b.spec = sandbox.Spec{
		Settings: service.Settings(),
		Labels:   map[string]string{"talkops": "1"},
		Created:  func(i sandbox.Info) { show(i) },
		Progress: func(what string) { show(what) },
	}
	if !op.closed {
		if b.sb, err = s.Provider.Open(b.now(), b.spec); err != nil {
			return "", err
		}
	}
	if op.prepare != nil {
		op.prepare(b)
	}
	service.Inject(fault)
	ctx, cancel := context.WithTimeout(b.now(), time.Second)
	defer cancel()
	show(op.do(ctx, b))
	show(b.out.String())
	show(b.listed)
	service.Heal()
	if b.sb != nil {
		show(b.sb.Info())
		b.sb.Close()
	}
	return strings.Join(shown, "\n"), nil
}
