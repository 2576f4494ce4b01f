package hostfuncs

import (
	"fmt"
	"time"

	"github.com/talkops-ai/talkops/sdk/abi"
)

// A Record is one thing that happened in an operation: a host call, a request, a
// line the module logged, or its end. It holds no header, query or body, and no
// secret.
type Record struct {
	Time     time.Time `json:"time"`
	Provider string    `json:"provider"`
	Op       string    `json:"op"`                 // "exec"
	ID       string    `json:"op_id"`              // of the operation; the module knows it as call
	Event    string    `json:"event"`              // "call", "http", "log", "operation"
	MS       float64   `json:"ms"`                 // how long it took
	Function string    `json:"function,omitempty"` // of a call
	Result   int64     `json:"result,omitempty"`   // a status below zero, else the function's number
	In       int       `json:"in,omitempty"`       // bytes of the blocks
	Out      int       `json:"out,omitempty"`
	Method   string    `json:"method,omitempty"` // of a request
	URL      string    `json:"url,omitempty"`
	Status   int       `json:"status,omitempty"`
	Level    string    `json:"level,omitempty"` // of a line
	Text     string    `json:"text,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// String is the record for people.
func (r Record) String() string {
	head := r.Provider + " " + r.Op
	end := fmt.Sprintf(" in %.1f ms", r.MS)
	if r.Error != "" {
		end = ": " + r.Error + end
	}
	switch r.Event {
	case "http":
		status := ""
		if r.Status != 0 {
			status = fmt.Sprintf(": %d", r.Status)
		}
		return fmt.Sprintf("%s: %s %s%s%s", head, r.Method, r.URL, status, end)
	case "log":
		return fmt.Sprintf("%s %s: %s", head, r.Level, r.Text)
	case "operation":
		return head + " ended" + end
	}
	return fmt.Sprintf("%s: %s(%d bytes) = %d (%d bytes)%s", head, r.Function, r.In, r.Result, r.Out, end)
}

// record completes a record and gives it to the log.
func (c *Call) record(r Record, began time.Time) {
	r.Time, r.MS = began.UTC(), float64(time.Since(began).Microseconds())/1000
	r.Provider, r.Op, r.ID = c.op.Provider, c.op.Name, c.op.ID
	r.URL, r.Text, r.Error = c.scrub(r.URL), c.scrub(r.Text), c.scrub(abi.Clean(r.Error, 500))
	c.f.log(r)
}
