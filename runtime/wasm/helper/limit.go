//go:build linux || darwin

package helper

import (
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// limit bounds what the process may take, where the system has such bounds.
func limit(l Load) {
	memory := uint64(l.Pages) << 16
	debug.SetMemoryLimit(512 << 20)
	set := func(what int, n uint64) {
		var r syscall.Rlimit
		if syscall.Getrlimit(what, &r) != nil {
			return
		}
		r.Max = min(r.Max, n)
		r.Cur = r.Max
		syscall.Setrlimit(what, &r)
	}
	set(syscall.RLIMIT_CORE, 0)
	set(syscall.RLIMIT_NOFILE, 64)
	if runtime.GOOS == "linux" {
		// An instance has two memories: the module's and that of its messages.
		set(syscall.RLIMIT_AS, max(4<<30, 2<<30+2*memory*uint64(l.AtOnce+2)))
	}
}

// allocator takes memory from the system and gives it back at once, untouched
// pages never: the collector has nothing to do with it.
func allocator() experimental.MemoryAllocator {
	return experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
		if most == 0 {
			return &mapped{}
		}
		data, err := syscall.Mmap(-1, 0, int(most), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if err != nil {
			return &mapped{}
		}
		return &mapped{data}
	})
}

// A mapped memory is never read beyond what it was given.
type mapped struct{ data []byte }

func (m *mapped) Reallocate(size uint64) []byte {
	if size > uint64(len(m.data)) {
		return nil
	}
	return m.data[:size:size]
}

func (m *mapped) Free() {
	if m.data != nil {
		syscall.Munmap(m.data)
		m.data = nil
	}
}
