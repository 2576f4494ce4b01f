package agentcoretest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/machine"
)

// The states of a session.
const (
	ready      = "READY"
	terminated = "TERMINATED"
)

// A box is one session. Its fields are guarded by Server.mu, the tasks by mu.
type box struct {
	interpreter, id string
	name, token     string
	timeout         time.Duration
	status          string
	created         time.Time
	updated         time.Time
	machine         *machine.Machine
	dir             string // where commands and file calls begin

	mu    sync.Mutex
	tasks []*task
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func hmacOf(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// escape escapes a path once more, as the signature wants it.
func escape(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// find returns the session with that id, of whatever status. The caller holds mu.
func (s *Server) find(id string) *box {
	for _, b := range s.boxes {
		if b.id == id {
			s.settle(b)
			return b
		}
	}
	return nil
}

// settle lets time pass for b. The caller holds mu.
func (s *Server) settle(b *box) {
	if b.status == ready && s.cfg.Now().Sub(b.created) >= b.timeout {
		b.status, b.updated = terminated, s.cfg.Now()
		go b.end()
	}
}

// show is b as JSON fields. The caller holds mu.
func (b *box) show() map[string]any {
	return map[string]any{
		"codeInterpreterIdentifier": b.interpreter, "sessionId": b.id, "name": b.name, "status": b.status,
		"sessionTimeoutSeconds": b.timeout.Seconds(), "createdAt": stamp(b.created),
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// known reports whether r names an interpreter of the account.
func (s *Server) known(w http.ResponseWriter, r *http.Request) bool {
	id := r.PathValue("interpreter")
	if id == Identifier || slices.Contains(s.cfg.Identifiers, id) {
		return true
	}
	refuse(w, 404, "ResourceNotFoundException", "Code interpreter "+id+" was not found")
	return false
}

// session finds the session of a request, which ends with an answer if there is
// none.
func (s *Server) session(w http.ResponseWriter, r *http.Request, id string) *box {
	if !s.known(w, r) {
		return nil
	}
	if !regexp.MustCompile(`^[0-9a-zA-Z]{1,40}$`).MatchString(id) {
		refuse(w, 400, "ValidationException", "1 validation error detected: Value at 'sessionId' failed to satisfy constraint: Member must satisfy regular expression pattern: [0-9a-zA-Z]{1,40}")
		return nil
	}
	b := s.find(id)
	if b == nil || b.interpreter != r.PathValue("interpreter") {
		refuse(w, 404, "ResourceNotFoundException", "Session "+id+" was not found")
		return nil
	}
	return b
}

func (s *Server) start(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Name    string `json:"name"`
		Timeout *int   `json:"sessionTimeoutSeconds"`
		Token   string `json:"clientToken"`
	}
	if err := json.Unmarshal(bodyOf(r), &asked); err != nil {
		refuse(w, 400, "ValidationException", "the body is not valid JSON")
		return
	}
	timeout := 900
	if asked.Timeout != nil {
		timeout = *asked.Timeout
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known(w, r) {
		return
	}
	if timeout < 1 || timeout > 28800 || len(asked.Name) > 100 {
		refuse(w, 400, "ValidationException", "1 validation error detected: a value failed to satisfy its constraint")
		return
	}
	answer := func(b *box) {
		fields := b.show()
		for _, key := range []string{"name", "status", "sessionTimeoutSeconds"} {
			delete(fields, key)
		}
		emulate.Reply(w, 200, fields)
	}
	for _, b := range s.boxes {
		if asked.Token != "" && b.token == asked.Token {
			answer(b)
			return
		}
	}
	m, err := machine.New("")
	if err != nil {
		refuse(w, 500, "InternalServerException", err.Error())
		return
	}
	s.last++
	b := &box{
		interpreter: r.PathValue("interpreter"), id: fmt.Sprintf("01JTEST%019d", s.last),
		name: asked.Name, token: asked.Token, timeout: time.Duration(timeout) * time.Second,
		status: ready, created: s.cfg.Now(), updated: s.cfg.Now(), machine: m, dir: m.Root(),
	}
	for part := range strings.SplitSeq("opt/amazon/genesis1p-tools/var", "/") {
		b.dir = filepath.Join(b.dir, part)
		if err := os.Mkdir(b.dir, 0o755); err == nil {
			m.Own(b.dir)
		}
	}
	s.boxes = append(s.boxes, b)
	if s.Behaviour().EndIn != "" {
		b.status = s.Behaviour().EndIn
		go b.end()
	}
	answer(b)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.session(w, r, r.URL.Query().Get("sessionId")); b != nil {
		emulate.Reply(w, 200, b.show())
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Most   *int   `json:"maxResults"`
		Next   string `json:"nextToken"`
		Status string `json:"status"`
	}
	if err := json.Unmarshal(bodyOf(r), &asked); err != nil {
		refuse(w, 400, "ValidationException", "the body is not valid JSON")
		return
	}
	most := 10
	if asked.Most != nil {
		most = *asked.Most
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known(w, r) {
		return
	}
	if most < 1 || most > 100 {
		refuse(w, 400, "ValidationException", "Value at 'maxResults' failed to satisfy constraint")
		return
	}
	if s.cfg.Page > 0 {
		most = min(most, s.cfg.Page)
	}
	items := []map[string]any{}
	answer := map[string]any{}
	past := asked.Next == ""
	for _, b := range slices.Backward(s.boxes) {
		if s.settle(b); !past {
			past = "after-"+b.id == asked.Next
			continue
		}
		if b.interpreter != r.PathValue("interpreter") || asked.Status != "" && b.status != asked.Status {
			continue
		}
		if len(items) == most {
			answer["nextToken"] = fmt.Sprintf("after-%v", items[most-1]["sessionId"])
			break
		}
		fields := b.show()
		delete(fields, "sessionTimeoutSeconds")
		fields["lastUpdatedAt"] = stamp(b.updated)
		items = append(items, fields)
	}
	answer["items"] = items
	emulate.Reply(w, 200, answer)
}

func (s *Server) stop(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.session(w, r, r.URL.Query().Get("sessionId"))
	if b == nil {
		return
	}
	if s.Due(func(b *Behaviour) *int { return &b.BusyDeletes }) {
		refuse(w, 409, "ConflictException", "The session is being changed")
		return
	}
	if b.status != ready {
		refuse(w, 404, "ResourceNotFoundException", "Session "+b.id+" was not found")
		return
	}
	b.status, b.updated = terminated, s.cfg.Now()
	go b.end()
	emulate.Reply(w, 200, map[string]any{"codeInterpreterIdentifier": b.interpreter, "sessionId": b.id, "lastUpdatedAt": stamp(b.updated)})
}

// end removes the computer of b.
func (b *box) end() { b.machine.Close() }
