package hostfuncs

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// lockEvery is how often a state that is in use is asked for again.
const lockEvery = 20 * time.Millisecond

// mostState is how many bytes of state a provider may keep, keys included.
const mostState = 64 << 10

// state answers one StateCall.
func (c *Call) state(block []byte) abi.StateResult {
	fail := func(code sandbox.Code, format string, args ...any) abi.StateResult {
		c.fail(code, format, args...)
		return abi.StateResult{Error: c.last}
	}
	var call abi.StateCall
	if err := json.Unmarshal(block, &call); err != nil {
		return fail(sandbox.CodeInvalidArgument, "state: the call is not JSON")
	}
	file := c.f.grant.State
	switch {
	case file == "":
		return fail(sandbox.CodePermissionDenied, "no state is kept for this provider here")
	case call.Key == "" || len(call.Key) > 256:
		return fail(sandbox.CodeInvalidArgument, "state: a key has 1 to 256 bytes")
	case call.Fn != "get" && call.Fn != "set" && call.Fn != "delete":
		return fail(sandbox.CodeUnsupported, "state has no %q", call.Fn)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fail(sandbox.CodeInternal, "state: it cannot be kept")
	}
	lock := flock.New(file + ".lock")
	if ok, err := lock.TryLockContext(c.ctx, lockEvery); err != nil || !ok {
		return fail(sandbox.CodeUnavailable, "state: it is in use")
	}
	defer lock.Unlock()
	kept := map[string]string{}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) || kept == nil {
		kept = map[string]string{} // what cannot be read is no state
	}
	if call.Fn == "get" {
		v, found := kept[call.Key]
		return abi.StateResult{Value: v, Found: found}
	}
	delete(kept, call.Key)
	if call.Fn == "set" {
		kept[call.Key] = call.Value
	}
	size := 0
	for k, v := range kept {
		size += len(k) + len(v)
	}
	if size > mostState {
		return fail(sandbox.CodeTooLarge, "state: %d bytes; the limit is %d", size, mostState)
	}
	if data, err = json.Marshal(kept); err == nil {
		err = replaceFile(file, data)
	}
	if err != nil {
		return fail(sandbox.CodeInternal, "state: it cannot be kept")
	}
	return abi.StateResult{}
}

// replaceFile makes a private file hold data, whole or not at all.
func replaceFile(file string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
