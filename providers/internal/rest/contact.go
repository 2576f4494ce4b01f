package rest

import "time"

// A Contact is the one with a service through which a running command is watched. It
// is not safe for concurrent use.
type Contact struct {
	most time.Duration
	tell func(since, until time.Time)
	seen time.Time
	told bool
}

// NewContact returns one with a service that was heard just now. Without a word for
// longer than most it is lost. Tell, which may be nil, is that of sandbox.Cmd.Unheard.
func NewContact(most time.Duration, tell func(since, until time.Time)) *Contact {
	return &Contact{most: most, tell: tell, seen: time.Now()}
}

// Heard notes that the service answered.
func (c *Contact) Heard() {
	c.seen = time.Now()
	if c.told {
		c.told = false
		c.tell(time.Time{}, time.Time{})
	}
}

// Failed notes that the service could not be asked.
func (c *Contact) Failed() {
	if c.tell != nil {
		c.told = true
		c.tell(c.seen, c.seen.Add(c.most))
	}
}

// Lost reports whether nothing was heard for too long.
func (c *Contact) Lost() bool { return time.Since(c.seen) > c.most }
