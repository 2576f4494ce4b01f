package hostfuncs

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// mostMACs is how many an operation may ask for: enough to sign, too few to be a
// way to search for a key.
const mostMACs = 100

// mac computes an HMAC with a secret.
func (c *Call) mac(block []byte) abi.MACResult {
	fail := func(code sandbox.Code, format string, args ...any) abi.MACResult {
		c.fail(code, format, args...)
		return abi.MACResult{Error: c.last}
	}
	var call abi.MACCall
	if err := json.Unmarshal(block, &call); err != nil {
		return fail(sandbox.CodeInvalidArgument, "mac: the call is not JSON")
	}
	if c.macs++; c.macs > mostMACs {
		return fail(sandbox.CodePermissionDenied, "mac: more than %d in one operation", mostMACs)
	}
	secret, ok := c.op.Secrets[call.Secret]
	if !ok {
		return fail(sandbox.CodePermissionDenied, "mac: the module uses the secret %q, which it was not given", call.Secret)
	}
	algorithm, ok := map[string]func() hash.Hash{"hmac-sha256": sha256.New, "hmac-sha512": sha512.New, "hmac-sha1": sha1.New}[call.Alg]
	if !ok {
		return fail(sandbox.CodeUnsupported, "mac has no %q", call.Alg)
	}
	data := []byte(call.Data)
	if call.DataB64 != "" {
		var err error
		if data, err = base64.StdEncoding.DecodeString(call.DataB64); err != nil {
			return fail(sandbox.CodeInvalidArgument, "mac: data_b64 is not base64")
		}
	}
	m := hmac.New(algorithm, []byte(secret.Value))
	m.Write(data)
	sum := m.Sum(nil)
	switch call.Out {
	case "", "hex":
		return abi.MACResult{MAC: hex.EncodeToString(sum)}
	case "base64":
		return abi.MACResult{MAC: base64.StdEncoding.EncodeToString(sum)}
	case "base64url":
		return abi.MACResult{MAC: base64.RawURLEncoding.EncodeToString(sum)}
	}
	return fail(sandbox.CodeInvalidArgument, "mac: out %q is not known", call.Out)
}

// sign signs a request that is otherwise complete, with settings the module names.
func (c *Call) sign(ctx context.Context, req *http.Request, s abi.Sign, body []byte, streamed bool) error {
	if s.Kind != "sigv4" {
		return fmt.Errorf("sign has no %q", s.Kind)
	}
	if s.Service == "" || s.Region == "" {
		return fmt.Errorf("sign needs a service and a region")
	}
	var failure error
	get := func(key string) string {
		if secret, ok := c.op.Secrets[key]; ok {
			if !secret.bound(req.URL) {
				failure = fmt.Errorf("the secret %q is not for %s", key, req.URL.Hostname())
			}
			return secret.Value
		}
		if key != "" && c.op.Settings[key] == "" {
			failure = fmt.Errorf("the module signs with the setting %q, which it was not given", key)
		}
		return c.op.Settings[key]
	}
	keys := aws.Credentials{AccessKeyID: get(s.KeyID), SecretAccessKey: get(s.Key), SessionToken: get(s.SessionToken)}
	if failure != nil {
		return failure
	}
	payload := "UNSIGNED-PAYLOAD"
	if !streamed {
		sum := sha256.Sum256(body)
		payload = hex.EncodeToString(sum[:])
	}
	if s.Service == "s3" || streamed {
		req.Header.Set("X-Amz-Content-Sha256", payload)
	}
	return v4.NewSigner().SignHTTP(ctx, keys, req, payload, s.Service, s.Region, time.Now())
}
