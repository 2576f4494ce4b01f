package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestMachineInUseIsKeptAlive(t *testing.T) {
	for _, row := range []struct {
		name string
		life func(h *heart) // of what happens to it
		want int            // beats, one a minute
	}{
		{"nobody uses it", func(h *heart) { time.Sleep(10 * time.Minute) }, 0},
		{"a model thinks for long", func(h *heart) { h.work(1); time.Sleep(10*time.Minute + time.Second); h.work(-1) }, 10},
		{"then it waits for the user", func(h *heart) {
			h.work(1)
			time.Sleep(2*time.Minute + time.Second)
			h.work(-1)
			time.Sleep(10 * time.Minute)
		}, 2},
		{"a question that nobody answers", func(h *heart) { h.work(1); time.Sleep(10 * time.Hour) }, 59},
		{"work that shows now and then", func(h *heart) {
			h.work(1)
			for range 3 {
				time.Sleep(50*time.Minute + time.Second)
				h.sign()
			}
		}, 150},
		{"two things at once", func(h *heart) {
			h.work(1)
			h.work(1)
			h.work(-1)
			time.Sleep(2*time.Minute + time.Second)
		}, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				beats := 0
				h := &heart{every: time.Minute, beat: func(context.Context) { beats++ }}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); h.run(ctx) }()
				row.life(h)
				cancel()
				<-done
				if beats != row.want {
					t.Errorf("%d beats, want %d", beats, row.want)
				}
			})
		})
	}
}

func TestNearEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := &heart{}
		if _, near := h.nearEnd(began); near {
			t.Error("an end that is not known is near")
		}
		h.end(began.Add(100 * time.Minute))
		time.Sleep(89 * time.Minute)
		if left, near := h.nearEnd(began); near || left != 11*time.Minute {
			t.Errorf("%v before the end: near %v", left, near)
		}
		time.Sleep(2 * time.Minute)
		if left, near := h.nearEnd(began); !near || left != 9*time.Minute {
			t.Errorf("%v before the end: near %v", left, near)
		}
	})
}
