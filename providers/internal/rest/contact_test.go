package rest

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestContactIsLostAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var since, until time.Time
		told := 0
		c := NewContact(5*time.Minute, func(s, u time.Time) { since, until, told = s, u, told+1 })
		c.Heard() // which is nothing to tell
		time.Sleep(4 * time.Minute)
		c.Failed()
		if told != 1 || !since.Equal(began) || !until.Equal(began.Add(5*time.Minute)) || c.Lost() {
			t.Errorf("after a failure: told %d times, %v to %v, lost: %v", told, since, until, c.Lost())
		}
		c.Heard()
		c.Heard()
		if told != 2 || !since.IsZero() {
			t.Errorf("heard again: told %d times, since %v", told, since)
		}
		time.Sleep(5*time.Minute + time.Second)
		if !c.Lost() {
			t.Error("five minutes without a word are not lost")
		}
	})
}
