// Package abi is what crosses the wall between talkops and a provider that is a
// WebAssembly module: the names of the functions on both sides, the JSON messages
// they exchange, and the version of all that.
//
// A module exports one function per operation. Each takes nothing and returns an
// i32: 0, after it has set one JSON reply as its output. Everything a module does
// to the world is a host function (see [Functions]) of the namespace
// "talkops:host/v1". Bulk bytes never stand in a message: a small number, a
// handle, names them for the length of one operation.
package abi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// The version. Within a major nothing that works stops working.
const (
	Major = 1
	Minor = 0
)

// Marker is the export that says which major a module speaks. It does nothing: a
// module with a runtime to initialise is called there first, before there is an
// operation and thus without host functions.
const Marker = "talkops_provider_abi_1"

// MarkerPrefix begins the markers of all majors.
const MarkerPrefix = "talkops_provider_abi_"

// Namespace is where the host functions are imported from.
const Namespace = "talkops:host/v1"

// UserNamespace has the same functions, for kits that can import from nowhere else.
const UserNamespace = "extism:host/user"

// MaxMessage is the most bytes a message may have.
const MaxMessage = 1 << 20

// MaxBlock is the most bytes of bulk data one host call takes or gives.
const MaxBlock = 64 << 10

// Exports a module has.
const (
	Describe  = "provider_describe"
	Open      = "provider_open"
	List      = "provider_list"
	Exec      = "sandbox_exec"
	ReadFile  = "sandbox_read_file"
	WriteFile = "sandbox_write_file"
	Destroy   = "sandbox_destroy"
	Kill      = "sandbox_kill"
	Snapshot  = "sandbox_snapshot"
	Unpack    = "sandbox_unpack"
	Pack      = "sandbox_pack"
	Extend    = "sandbox_extend"

	RemoveSnapshot = "provider_remove_snapshot"
)

// Required lists the exports every provider has.
func Required() []string { return []string{Describe, Open, Exec, ReadFile, WriteFile, Destroy} }

// Optional lists the exports a provider may have.
func Optional() []string { return []string{List, RemoveSnapshot, Kill, Snapshot, Unpack, Pack, Extend} }

// Text is a string that may hold bytes which are not UTF-8, as arguments and file
// names may. In JSON it is a string, or {"b64": "…"} where that cannot be.
type Text string

// MarshalJSON writes t as a string if it can be one.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string]string{"b64": base64.StdEncoding.EncodeToString([]byte(t))})
}

// UnmarshalJSON reads either form.
func (t *Text) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(t))
	}
	var coded struct {
		B64 *string `json:"b64"`
	}
	if err := json.Unmarshal(data, &coded); err != nil {
		return err
	}
	if coded.B64 == nil {
		return errors.New("text is neither a string nor base64")
	}
	raw, err := base64.StdEncoding.DecodeString(*coded.B64)
	*t = Text(raw)
	return err
}

// Common is what every request of an operation holds.
type Common struct {
	ABI        [2]int            `json:"abi"`
	Call       string            `json:"call"`        // unique: for logs and idempotency
	DeadlineMS int64             `json:"deadline_ms"` // what is left at the start
	GraceMS    int64             `json:"grace_ms"`    // what is left for cleaning up after a stop
	Settings   map[string]string `json:"settings"`    // secrets are placeholders
	Options    map[string]any    `json:"options"`     // the user's own table
	Sandbox    *Sandbox          `json:"sandbox,omitempty"`
}

// A Sandbox names an open machine in a request.
type Sandbox struct {
	ID    string          `json:"id"`
	Dir   Text            `json:"dir"`
	Token string          `json:"token"`         // what the module last gave
	Env   map[string]Text `json:"env,omitempty"` // of every command
}

// A DescribeRequest asks what the provider is.
type DescribeRequest struct {
	ABI  [2]int `json:"abi"`
	Host Host   `json:"host"`
}

// A Host tells a module who runs it.
type Host struct {
	Name     string   `json:"name"`
	Features []string `json:"features"`
}

// A Description answers a DescribeRequest.
type Description struct {
	ABI      [2]int     `json:"abi"`
	Name     string     `json:"name"`
	Version  string     `json:"version,omitempty"`
	Title    string     `json:"title,omitempty"`
	Dir      string     `json:"dir,omitempty"`
	SignIn   string     `json:"sign_in,omitempty"`
	Settings []Setting  `json:"settings,omitempty"`
	Logins   [][]string `json:"logins,omitempty"`
	Features Features   `json:"features"`
	Can      []string   `json:"can,omitempty"`   // optional exports that work; absent: all there are
	Needs    []string   `json:"needs,omitempty"` // host features it cannot do without
	Hosts    []string   `json:"hosts,omitempty"` // hosts it would like to reach, for the question to the user
}

// A Setting is one value the provider takes.
type Setting struct {
	Key     string   `json:"key"`
	Env     []string `json:"env,omitempty"`
	Help    string   `json:"help,omitempty"`
	Secret  bool     `json:"secret,omitempty"`
	URL     bool     `json:"url,omitempty"`
	Default string   `json:"default,omitempty"`
	Hosts   []string `json:"hosts,omitempty"` // of a secret: where it may go; absent: everywhere that is allowed
}

// Features says what a provider honours.
type Features struct {
	Attach   bool `json:"attach,omitempty"`
	Snapshot bool `json:"snapshot,omitempty"`
	Image    bool `json:"image,omitempty"`
	Lifetime bool `json:"lifetime,omitempty"`
	Idle     bool `json:"idle,omitempty"`
	Labels   bool `json:"labels,omitempty"`
}

// An OpenRequest starts a sandbox, or attaches to Spec.ID.
type OpenRequest struct {
	Common
	Mode string `json:"mode"` // "start" or "attach"
	Spec Spec   `json:"spec"`
}

// Spec says which sandbox is wanted.
type Spec struct {
	ID         string            `json:"id,omitempty"`
	Token      string            `json:"token,omitempty"`
	Name       string            `json:"name,omitempty"`
	Snapshot   string            `json:"snapshot,omitempty"`
	Image      string            `json:"image,omitempty"`
	Dir        Text              `json:"dir,omitempty"`
	Env        map[string]Text   `json:"env,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	LifetimeMS int64             `json:"lifetime_ms,omitempty"`
	IdleMS     int64             `json:"idle_ms,omitempty"`
}

// Opened answers an OpenRequest, and is what created is told.
type Opened struct {
	ID          string   `json:"id"`
	Dir         Text     `json:"dir,omitempty"`
	Token       string   `json:"token,omitempty"`
	ExpiresAtMS int64    `json:"expires_at_ms,omitempty"`
	Can         []string `json:"can,omitempty"` // optional exports this sandbox has; absent: those of describe
}

// A ListRequest asks for the machines with those labels.
type ListRequest struct {
	Common
	Labels map[string]string `json:"labels"`
	Cursor string            `json:"cursor,omitempty"`
}

// Listing answers a ListRequest.
type Listing struct {
	Sandboxes []Listed `json:"sandboxes"`
	Next      string   `json:"next,omitempty"`
}

// Listed is one machine.
type Listed struct {
	ID          string            `json:"id"`
	Name        string            `json:"name,omitempty"`
	State       string            `json:"state,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	CreatedAtMS int64             `json:"created_at_ms,omitempty"`
	ExpiresAtMS int64             `json:"expires_at_ms,omitempty"`
}

// An ExecRequest runs a command, whose output goes through emit.
type ExecRequest struct {
	Common
	Cmd Cmd `json:"cmd"`
}

// Cmd is one command.
type Cmd struct {
	ID     string          `json:"id"`
	Args   []Text          `json:"args"`
	Dir    Text            `json:"dir,omitempty"`
	Env    map[string]Text `json:"env,omitempty"`
	Stdin  int32           `json:"stdin"`  // a handle; 0 is none
	Stdout bool            `json:"stdout"` // whether anybody takes it
	Stderr bool            `json:"stderr"`
}

// Exited answers an ExecRequest. A status that is absent is an error.
type Exited struct {
	Exit *int `json:"exit"`
}

// A FileRequest reads a file into Dst, or writes it from Src.
type FileRequest struct {
	Common
	Path Text   `json:"path"`
	Mode string `json:"mode,omitempty"` // of a new file, octal
	Src  int32  `json:"src,omitempty"`
	Dst  int32  `json:"dst,omitempty"`
}

// A TreeRequest unpacks Src below Dir, or packs Names below Dir into Dst. The
// format is an uncompressed tar.
type TreeRequest struct {
	Common
	Dir   Text   `json:"dir"`
	Names []Text `json:"names,omitempty"`
	Src   int32  `json:"src,omitempty"`
	Dst   int32  `json:"dst,omitempty"`
}

// A NameRequest keeps or removes a snapshot of that name, or ends the command of that
// id.
type NameRequest struct {
	Common
	Name string `json:"name"`
}

// An ExtendRequest moves the end of a machine.
type ExtendRequest struct {
	Common
	UntilMS int64 `json:"until_ms"`
}

// Extended answers an ExtendRequest.
type Extended struct {
	UntilMS int64 `json:"until_ms"`
}

// A Plain request has no more than what all have; destroy is one.
type Plain struct{ Common }

// Done answers a request that has nothing to tell.
type Done struct{}

// A Reply is what every export sets as its output: one of the two.
type Reply struct {
	OK    json.RawMessage `json:"ok,omitempty"`
	Error *Error          `json:"error,omitempty"`
}

// An Error is a failure. Kind is a code of sdk/sandbox.
type Error struct {
	Kind         string `json:"kind"`
	Op           string `json:"op,omitempty"`
	Message      string `json:"message,omitempty"`
	Status       int    `json:"status,omitempty"`         // of HTTP
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"` // what the vendor asks for
	Sent         bool   `json:"sent,omitempty"`           // of http: part of the request may have left
}

func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = e.Kind
	}
	if e.Op != "" {
		text = e.Op + ": " + text
	}
	return text
}

// ReadReply decodes a module's output into ok. The error is an *Error for a
// failure the module reports, else says what is wrong with the output.
func ReadReply(output []byte, ok any) error {
	switch {
	case len(output) == 0:
		return errors.New("no answer")
	case len(output) > MaxMessage:
		return fmt.Errorf("an answer of %d bytes; the limit is %d", len(output), MaxMessage)
	case !utf8.Valid(output):
		return errors.New("an answer that is not UTF-8")
	}
	var r Reply
	if err := json.Unmarshal(output, &r); err != nil {
		return errors.New("an answer that is not JSON")
	}
	switch {
	case r.OK != nil && r.Error != nil:
		return errors.New(`an answer with both "ok" and "error"`)
	case r.Error != nil:
		return r.Error
	case r.OK == nil:
		return errors.New(`an answer with neither "ok" nor "error"`)
	}
	if err := json.Unmarshal(r.OK, ok); err != nil {
		return errors.New("an answer of another form than asked for")
	}
	return nil
}
