//go:build wasip1

package guest

import (
	"encoding/binary"
	"errors"
	"io"
	"runtime"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

//go:wasmimport extism:host/env alloc
func kernelAlloc(n uint64) uint64

//go:wasmimport extism:host/env free
func kernelFree(at uint64)

//go:wasmimport extism:host/env length
func kernelLength(at uint64) uint64

//go:wasmimport extism:host/env load_u8
func kernelLoad8(at uint64) uint32

//go:wasmimport extism:host/env load_u64
func kernelLoad64(at uint64) uint64

//go:wasmimport extism:host/env store_u8
func kernelStore8(at uint64, v uint32)

//go:wasmimport extism:host/env store_u64
func kernelStore64(at, v uint64)

//go:wasmimport extism:host/env input_length
func kernelInputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func kernelInput8(at uint64) uint32

//go:wasmimport extism:host/env input_load_u64
func kernelInput64(at uint64) uint64

//go:wasmimport extism:host/env output_set
func kernelOutput(at, n uint64)

//go:wasmimport talkops:host/v1 http
func hostHTTP(block uint64) int64

//go:wasmimport talkops:host/v1 http_start
func hostHTTPStart(block uint64) int32

//go:wasmimport talkops:host/v1 http_wait
func hostHTTPWait(handle, ms int32) int64

//go:wasmimport talkops:host/v1 stream_next
func hostStreamNext(handle, ms int32) int64

//go:wasmimport talkops:host/v1 stream_send
func hostStreamSend(handle int32, block uint64) int32

//go:wasmimport talkops:host/v1 stream_finish
func hostStreamFinish(handle int32) int32

//go:wasmimport talkops:host/v1 stream_close
func hostStreamClose(handle int32) int32

//go:wasmimport talkops:host/v1 emit
func hostEmit(stream int32, block uint64) int32

//go:wasmimport talkops:host/v1 ref_read
func hostRefRead(handle, most, ms int32) int64

//go:wasmimport talkops:host/v1 ref_write
func hostRefWrite(handle int32, block uint64) int32

//go:wasmimport talkops:host/v1 created
func hostCreated(block uint64) int32

//go:wasmimport talkops:host/v1 progress
func hostProgress(block uint64) int32

//go:wasmimport talkops:host/v1 log
func hostLog(level int32, block uint64) int32

//go:wasmimport talkops:host/v1 stopped
func hostStopped() int32

//go:wasmimport talkops:host/v1 last_error
func hostLastError() int64

//go:wasmimport talkops:host/v1 fs
func hostFS(block uint64) int64

//go:wasmimport talkops:host/v1 stream_info
func hostStreamInfo(handle int32) int64

//go:wasmimport talkops:host/v1 mac
func hostMAC(block uint64) int64

//go:wasmimport talkops:host/v1 state
func hostState(block uint64) int64

// ask sends a message to a host function and reads its answer.
func ask[R any](f func(uint64) int64, message any) (answer R, err error) {
	data, err := encode(message)
	if err != nil {
		return answer, err
	}
	at := with(data, f)
	if at < 0 {
		return answer, lastError()
	}
	return answer, decode(take(uint64(at)), &answer)
}

// put copies data into a block, which the caller frees.
func put(data []byte) uint64 {
	at := kernelAlloc(uint64(len(data)))
	i := 0
	for ; i+8 <= len(data); i += 8 {
		kernelStore64(at+uint64(i), binary.LittleEndian.Uint64(data[i:]))
	}
	for ; i < len(data); i++ {
		kernelStore8(at+uint64(i), uint32(data[i]))
	}
	return at
}

// take copies a block that the host made, and frees it.
func take(at uint64) []byte {
	n := int(kernelLength(at))
	data := make([]byte, n)
	i := 0
	for ; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], kernelLoad64(at+uint64(i)))
	}
	for ; i < n; i++ {
		data[i] = byte(kernelLoad8(at + uint64(i)))
	}
	kernelFree(at)
	return data
}

func input() []byte {
	n := int(kernelInputLength())
	data := make([]byte, n)
	i := 0
	for ; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], kernelInput64(uint64(i)))
	}
	for ; i < n; i++ {
		data[i] = byte(kernelInput8(uint64(i)))
	}
	return data
}

func with[T int32 | int64](data []byte, f func(uint64) T) T {
	at := put(data)
	defer kernelFree(at)
	return f(at)
}

// lastError is why the last host function failed.
func lastError() error {
	var e abi.Error
	if at := hostLastError(); at < 0 || decode(take(uint64(at)), &e) != nil {
		return errors.New("the host function failed")
	}
	return e.Sandbox()
}

// streams counts those that are open.
var streams int

// patience is how many milliseconds one host call waits before other goroutines
// get a turn: not for long if there may be one that reads or sends elsewhere.
func patience(others int) int32 {
	if others > 0 {
		return 5
	}
	return 50
}

// A source reads a handle of the caller.
type source struct{ handle int32 }

// Handle lets sdk/guest/guesthttp send what the source gives without reading it.
func (s *source) Handle() int32 { return s.handle }

// Close leaves the handle to the caller.
func (s *source) Close() error { return nil }

func (s *source) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		at := hostRefRead(s.handle, int32(min(len(p), abi.MaxBlock)), patience(streams))
		switch {
		case at >= 0:
			return copy(p, take(uint64(at))), nil
		case at == abi.StatusEnd:
			return 0, io.EOF
		case at == abi.StatusFailed:
			return 0, lastError()
		case at == abi.StatusStop:
			current.stop()
		}
		if err := current.ctx.Err(); err != nil {
			return 0, err
		}
		runtime.Gosched()
	}
}

// A sink writes to a handle of the caller, or to an output of the running
// command.
type sink struct {
	handle int32
	stream int32 // 1 stdout, 2 stderr; 0: the handle
}

// Handle lets sdk/guest/guesthttp see that a writer is the caller's.
func (s *sink) Handle() int32 { return s.handle }

func (s *sink) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 {
		part := p[:min(len(p), 32<<10)]
		var status int32
		if s.stream > 0 {
			status = with(part, func(at uint64) int32 { return hostEmit(s.stream, at) })
		} else {
			status = with(part, func(at uint64) int32 { return hostRefWrite(s.handle, at) })
		}
		if status != 0 {
			if status == abi.StatusFailed {
				return n, lastError()
			}
			return n, &sandbox.Error{Code: sandbox.CodeInternal, Msg: "nobody takes more"}
		}
		n += len(part)
		p = p[len(part):]
	}
	return n, nil
}

// Log writes a line to talkops' log of the provider.
func Log(text string) {
	with([]byte(text), func(at uint64) int32 { return hostLog(1, at) })
}
