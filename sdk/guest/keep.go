//go:build wasip1

package guest

import (
	"encoding/base64"

	"github.com/talkops-ai/talkops/sdk/abi"
)

// MAC is the HMAC of data with a secret setting, which the module cannot read. Alg
// is "hmac-sha256", "hmac-sha512" or "hmac-sha1".
func MAC(alg, setting string, data []byte) ([]byte, error) {
	r, err := ask[abi.MACResult](hostMAC, abi.MACCall{Alg: alg, Secret: setting, DataB64: base64.StdEncoding.EncodeToString(data), Out: "base64"})
	if err != nil {
		return nil, err
	}
	if r.Error != nil {
		return nil, r.Error.Sandbox()
	}
	return base64.StdEncoding.DecodeString(r.MAC)
}

// Load returns what the provider kept under key, in this run or an earlier one.
func Load(key string) (value string, found bool, err error) {
	r, err := state(abi.StateCall{Fn: "get", Key: key})
	return r.Value, r.Found, err
}

// Keep keeps a value on the user's computer: 64 KiB in all, and no place for
// secrets.
func Keep(key, value string) error {
	_, err := state(abi.StateCall{Fn: "set", Key: key, Value: value})
	return err
}

// Forget removes what was kept under key.
func Forget(key string) error {
	_, err := state(abi.StateCall{Fn: "delete", Key: key})
	return err
}

func state(call abi.StateCall) (abi.StateResult, error) {
	r, err := ask[abi.StateResult](hostState, call)
	if err == nil && r.Error != nil {
		err = r.Error.Sandbox()
	}
	return r, err
}
