package session

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestSilenceIsToldUntilItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		s := &silence{title: "Acme", note: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }, over: make(chan struct{})}
		began := time.Now()
		time.Sleep(20 * time.Second)
		for range 4 { // it is asked for again and again
			s.unheard(began, began.Add(5*time.Minute))
			time.Sleep(10 * time.Second)
		}
		s.unheard(time.Time{}, time.Time{})
		time.Sleep(time.Minute)
		again := time.Now()
		time.Sleep(4*time.Minute + 56*time.Second)
		s.unheard(again, again.Add(5*time.Minute))
		time.Sleep(20 * time.Second)
		s.end()
		want := []string{
			"  nothing heard from Acme for 20s; the command may still run; giving up in 4m40s",
			"  nothing heard from Acme for 35s; the command may still run; giving up in 4m25s",
			"  nothing heard from Acme for 50s; the command may still run; giving up in 4m10s",
			"  Acme is heard again, after 1m0s",
			"  nothing heard from Acme for 4m56s; the command may still run; giving up in 4s",
			"  nothing heard from Acme for 5m0s; giving up",
		}
		if got := said; !slices.Equal(got[:min(5, len(got))], want[:5]) || len(got) != len(want) {
			t.Errorf("it said\n%q\nwant\n%q", got, want)
		}
	})
}
