package session

import (
	"testing"
	"time"
)

func TestEndOfAMachineByAnotherClock(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	asked := now.Add(4 * time.Hour)
	for _, row := range []struct {
		name        string
		asked, told time.Time
		known       bool
	}{
		{"as it was asked for", asked, asked, true},
		{"a bit later", asked, asked.Add(time.Minute), true},
		{"sooner, as the account may not have it for so long", asked, now.Add(45 * time.Minute), true},
		{"a clock that is a day behind", asked, asked.Add(-day), false},
		{"a clock that is a day ahead", asked, asked.Add(day), false},
		{"nothing was asked for", time.Time{}, now.Add(2 * day), true},
		{"nor told", time.Time{}, time.Time{}, false},
	} {
		if end, known := endsHere(now, row.asked, row.told); known != row.known || known && !end.Equal(row.told) {
			t.Errorf("%s: %v, %v", row.name, end, known)
		}
	}
}

func TestCostOfAMachine(t *testing.T) {
	made := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	l := Lease{Created: made, Expires: made.Add(4 * time.Hour), Price: 0.5}
	for until, want := range map[time.Time]float64{
		made.Add(2 * time.Hour):   1,
		made.Add(30 * time.Hour):  2, // it has ended by itself
		made.Add(-24 * time.Hour): 0, // by another clock
	} {
		if got := l.CostUSD(made, until); got != want {
			t.Errorf("until %v: %v, want %v", until, got, want)
		}
	}
}
