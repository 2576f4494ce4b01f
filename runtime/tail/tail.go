// Package tail keeps the end of what a program prints.
package tail

import (
	"strings"
	"sync"
)

// A Buffer keeps the last bytes written to it. It is safe for concurrent use: both
// streams of a command may be written to it.
type Buffer struct {
	Most int // bytes; 0 is 4 KiB

	mu   sync.Mutex
	data []byte
}

// Write implements io.Writer. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := b.Most
	if most == 0 {
		most = 4 << 10
	}
	b.data = append(b.data, p...)
	if over := len(b.data) - most; over > 0 {
		b.data = append(b.data[:0], b.data[over:]...)
	}
	return len(p), nil
}

// String is what is kept, as text.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.ToValidUTF8(string(b.data), "\ufffd")
}

// Lines is what is kept of the last n lines, without empty ones at the end.
func (b *Buffer) Lines(n int) []string {
	text := strings.TrimRight(b.String(), "\r\n")
	if text == "" {
		return nil
	}
	list := strings.Split(text, "\n")
	return list[max(len(list)-n, 0):]
}
