package vercel

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// claims is what an OIDC token says of itself. Nobody but Vercel needs to verify it.
type claims struct {
	Team    string  `json:"owner_id"`
	Project string  `json:"project_id"`
	Expires float64 `json:"exp"`
}

// readClaims returns the claims of a token, and whether it is an OIDC token.
func readClaims(token string) (c claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, false
	}
	data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(data, &c) != nil {
		return claims{}, false
	}
	return c, c.Team != ""
}

// expires is when the token does; zero if it does not say.
func (c claims) expires() time.Time {
	if c.Expires <= 0 || c.Expires > 1e11 {
		return time.Time{}
	}
	return time.Unix(int64(c.Expires), 0)
}
