package helper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/talkops-ai/talkops/sdk/abi"
)

// A Frame is one message between the two processes.
type Frame struct {
	Kind    byte
	Op      uint32 // the operation
	Seq     uint32 // of a host call and its answer, counted within the operation
	Payload []byte
}

// What a frame is.
const (
	LoadModule byte = 1 // ↓ Load, a zero byte, the module
	Start      byte = 2 // ↓ the name of an export, a zero byte, its input
	Answer     byte = 3 // ↓ of a host call: a number, and the bytes of a block
	Soft       byte = 4 // ↓ the operation shall end: wake it if it sleeps
	Hard       byte = 5 // ↓ end the operation
	Ready      byte = 6 // ↑ the module is compiled
	Broken     byte = 7 // ↑ why it is not
	Host       byte = 8 // ↑ a host call: the function's index, its plain parameters, the bytes of its block
	Done       byte = 9 // ↑ the operation is over: an Outcome, and its output or why there is none
)

// An Outcome is how an operation ended.
type Outcome byte

const (
	Returned Outcome = iota // what follows is the output
	Failed                  // what follows says why
	Ended                   // by Hard
)

// The most bytes a frame may have.
const (
	MaxFrame = abi.MaxMessage + 4<<10
	MaxLoad  = 33 << 20
)

const headSize = 13

// Read reads a frame whose payload has at most so many bytes. It allocates no
// more than what arrives.
func Read(r io.Reader, most int) (Frame, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	n := binary.LittleEndian.Uint32(head[0:])
	f := Frame{Kind: head[4], Op: binary.LittleEndian.Uint32(head[5:]), Seq: binary.LittleEndian.Uint32(head[9:])}
	if uint64(n) > uint64(most) {
		return Frame{}, fmt.Errorf("a frame of %d bytes; the limit is %d", n, most)
	}
	f.Payload = make([]byte, n)
	_, err := io.ReadFull(r, f.Payload)
	return f, err
}

// Bytes is f as it is sent.
func (f Frame) Bytes() []byte {
	b := make([]byte, headSize, headSize+len(f.Payload))
	binary.LittleEndian.PutUint32(b[0:], uint32(len(f.Payload)))
	b[4] = f.Kind
	binary.LittleEndian.PutUint32(b[5:], f.Op)
	binary.LittleEndian.PutUint32(b[9:], f.Seq)
	return append(b, f.Payload...)
}

// A Writer writes frames one after the other. It may be used concurrently.
type Writer struct {
	W  io.Writer
	mu sync.Mutex
}

func (w *Writer) Write(f Frame) error {
	b := f.Bytes()
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.W.Write(b)
	return err
}

// A HostCall is the payload of Host.
type HostCall struct {
	Function abi.Function
	Ints     []int64
	Block    []byte
}

func (c HostCall) encode(index int) []byte {
	b := []byte{byte(index)}
	for _, n := range c.Ints {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return append(b, c.Block...)
}

// ReadHostCall reads the payload of Host.
func ReadHostCall(b []byte) (HostCall, error) {
	functions := abi.Functions()
	if len(b) == 0 || int(b[0]) >= len(functions) {
		return HostCall{}, errors.New("a host call of no function")
	}
	c := HostCall{Function: functions[b[0]]}
	b = b[1:]
	for _, t := range []byte(c.Function.Params) {
		if t == 'b' {
			continue
		}
		if len(b) < 8 {
			return HostCall{}, errors.New("a host call without its parameters")
		}
		c.Ints = append(c.Ints, int64(binary.LittleEndian.Uint64(b)))
		b = b[8:]
	}
	c.Block = b
	return c, nil
}

// EncodeAnswer is the payload of Answer.
func EncodeAnswer(n int64, block []byte) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(n)), block...)
}

func readAnswer(b []byte) (int64, []byte, error) {
	if len(b) < 8 {
		return 0, nil, errors.New("an answer without its number")
	}
	return int64(binary.LittleEndian.Uint64(b)), b[8:], nil
}
