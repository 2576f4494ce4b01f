package helper

import (
	"bytes"
	"context"
	"testing"

	"github.com/talkops-ai/talkops/sdk/abi"
)

// The parent takes a second host call while one is open for hostility. A call that
// was open when the operation was ended still is, there.
func TestNoHostCallAfterTheEnd(t *testing.T) {
	var sent bytes.Buffer
	ctx, end := context.WithCancel(t.Context())
	o := &operation{g: &guest{out: &Writer{W: &sent}}, id: 1, ctx: ctx, answers: make(chan Frame, 1), soft: make(chan struct{}), end: end}
	end()
	if n, _ := o.ask(ctx, 0, HostCall{}); n != abi.StatusStop || sent.Len() != 0 {
		t.Errorf("got %d, and %d bytes were sent; want %d and none", n, sent.Len(), abi.StatusStop)
	}
}
