package wasm

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/wasm/helper"
)

// Whatever a helper sends that has no place ends it.
func TestAHostileHelperIsEnded(t *testing.T) {
	frame := func(kind byte, op uint32, payload string) []byte {
		return helper.Frame{Kind: kind, Op: op, Payload: []byte(payload)}.Bytes()
	}
	long := binary.LittleEndian.AppendUint32(nil, 1<<31)
	for name, row := range map[string]struct {
		sent []byte
		want string
	}{
		"nothing":                  {nil, "its process ended"},
		"half a frame":             {frame(helper.Host, 1, "x")[:9], "its process ended"},
		"a frame without end":      {append(long, make([]byte, 9)...), "the limit is"},
		"an unknown kind":          {frame(77, 1, ""), "a frame of kind 77"},
		"a kind of ours":           {frame(helper.Hard, 1, ""), "a frame of kind 5"},
		"an operation of no one":   {frame(helper.Done, 9, "\x00{}"), "an operation that does not run"},
		"an end without a start":   {append(frame(helper.Done, 1, "\x00{}"), frame(helper.Done, 1, "\x00{}")...), "an operation that does not run"},
		"two host calls at a time": {append(frame(helper.Host, 1, "\x0f"), frame(helper.Host, 1, "\x0f")...), "a second host call"},
		"ready again":              {append(frame(helper.Ready, 0, ""), frame(helper.Ready, 0, "")...), "an operation that does not run"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &process{ops: map[uint32]*running{1: {calls: make(chan helper.Frame, 1), done: make(chan helper.Frame, 1)}}, kill: make(chan struct{})}
			p.read(bytes.NewReader(row.sent), make(chan helper.Frame, 1))
			<-p.kill
			if err := p.reason(); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestHostCallsOfNoSenseAreRefused(t *testing.T) {
	for _, payload := range []string{"", "\xff", "\x04", "\x08\x01\x02"} {
		if c, err := helper.ReadHostCall([]byte(payload)); err == nil {
			t.Errorf("%q is %+v", payload, c)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(helper.Frame{Kind: helper.Host, Op: 1, Payload: []byte("\x0fx")}.Bytes())
	f.Fuzz(func(_ *testing.T, sent []byte) {
		p := &process{ops: map[uint32]*running{1: {calls: make(chan helper.Frame, 1), done: make(chan helper.Frame, 1)}}, kill: make(chan struct{})}
		p.read(bytes.NewReader(sent), make(chan helper.Frame, 1))
		helper.ReadHostCall(sent)
	})
}
