//go:build !linux && !darwin

package helper

import (
	"runtime/debug"

	"github.com/tetratelabs/wazero/experimental"
)

func limit(Load) { debug.SetMemoryLimit(512 << 20) }

func allocator() experimental.MemoryAllocator { return nil }
