package abi

// Statuses of host functions. Everything below zero is one.
const (
	StatusEnd    = -1 // of a stream or a source
	StatusWait   = -2 // not yet: the waiting time is over
	StatusStop   = -3 // the operation was cancelled or its time is up; told once
	StatusFailed = -4 // last_error tells
)

// A Function is a host function. In a signature "i" is an i32, "I" an i64 and "b"
// the i64 offset of a block of kernel memory, which who received or allocated it
// frees. No function traps on bad input.
type Function struct {
	Name   string
	Params string
	Result string // "", "i", "I" or "b"
}

// Functions lists the host functions of this major.
func Functions() []Function {
	return []Function{
		{"http", "b", "b"},          // one request: HTTPRequest → HTTPResponse
		{"http_start", "b", "i"},    // begins one: a handle for the functions below
		{"http_wait", "ii", "b"},    // handle, milliseconds → HTTPResponse when the headers are there
		{"stream_next", "ii", "b"},  // handle, milliseconds → the next piece or record
		{"stream_send", "ib", "i"},  // handle, a piece of the request's body or a WebSocket's Message: 0, or not yet
		{"stream_finish", "i", "i"}, // the request's body is complete; a WebSocket is closed in good order
		{"stream_close", "i", "i"},  // lets go of it
		{"emit", "ib", "i"},         // 1 stdout or 2 stderr, bytes; 1: nobody takes more
		{"ref_read", "iii", "b"},    // handle, most bytes, milliseconds → bytes
		{"ref_write", "ib", "i"},    // handle, bytes
		{"fs", "b", "b"},            // FileCall → FileResult
		{"created", "b", "i"},       // Opened: a machine that now exists
		{"progress", "b", "i"},      // what is waited for, in a few words
		{"log", "ib", "i"},          // level 0 debug … 3 error, one line
		{"sleep", "i", "i"},         // milliseconds, at most a minute
		{"now", "", "I"},            // milliseconds since 1970
		{"remaining", "", "I"},      // milliseconds until the deadline
		{"stopped", "", "i"},        // 1 once the operation shall end, which counts as being told
		{"random", "i", "b"},        // so many bytes, at most 4096
		{"last_error", "", "b"},     // Error of the last call that failed
		{"ext", "b", "b"},           // {"fn": …}: the door for functions of later minors
		{"stream_info", "i", "b"},   // handle → StreamInfo
		{"mac", "b", "b"},           // MACCall → MACResult
		{"state", "b", "b"},         // StateCall → StateResult
	}
}

// An HTTPRequest is one request.
type HTTPRequest struct {
	Method    string              `json:"method"`
	URL       string              `json:"url"`
	Headers   map[string][]string `json:"headers,omitempty"` // {{secret:key}} stands for a setting that is secret
	Body      string              `json:"body,omitempty"`
	BodyB64   string              `json:"body_b64,omitempty"`
	BodyRef   int32               `json:"body_ref,omitempty"`   // streamed from a handle
	BodySent  bool                `json:"body_sent,omitempty"`  // of http_start: it comes by stream_send
	BodySize  int64               `json:"body_size,omitempty"`  // of that, if known
	TimeoutMS int64               `json:"timeout_ms,omitempty"` // within the deadline
	Redirect  string              `json:"redirect,omitempty"`   // "follow" (allowed hosts alone), "manual", "error"
	Again     bool                `json:"idempotent,omitempty"` // it may be sent again
	Response  HTTPMode            `json:"resp,omitempty"`
	Parts     []Part              `json:"parts,omitempty"`     // the body, one after the other
	Multipart []Part              `json:"multipart,omitempty"` // or these as multipart/form-data
	Encode    string              `json:"encode,omitempty"`    // "gzip": of the whole body
	Sign      *Sign               `json:"sign,omitempty"`
}

// A Part is a piece of a body: one of Text, B64 and Ref. Name, Filename and
// Headers are of multipart.
type Part struct {
	Text     string            `json:"text,omitempty"`
	B64      string            `json:"b64,omitempty"`
	Ref      int32             `json:"ref,omitempty"` // streamed from a handle
	As       string            `json:"as,omitempty"`  // of Ref: "raw" (default), "base64", or "json" for the inside of a JSON string
	Name     string            `json:"name,omitempty"`
	Filename string            `json:"filename,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
}

// A Sign makes the host sign a request, so that the module never holds the key.
// KeyID, Key and SessionToken name settings.
type Sign struct {
	Kind         string `json:"kind"` // "sigv4"
	Service      string `json:"service"`
	Region       string `json:"region"`
	KeyID        string `json:"key_id"`
	Key          string `json:"key"`
	SessionToken string `json:"session_token,omitempty"`
}

// An HTTPMode says where an answer's body goes.
type HTTPMode struct {
	Mode      string `json:"mode,omitempty"`  // "inline" (default), "ref", "emit", "stream"
	Max       int64  `json:"max,omitempty"`   // of inline
	Ref       int32  `json:"ref,omitempty"`   // of ref: the handle that takes it
	To        int32  `json:"to,omitempty"`    // of emit: 1 stdout, 2 stderr
	OK        []int  `json:"ok,omitempty"`    // statuses whose body goes to ref or emit; absent: 200 to 299
	Frame     string `json:"frame,omitempty"` // of stream: "raw" (default), "lines", "sse", "envelope"
	MaxRecord int64  `json:"max_record,omitempty"`
	Route     *Route `json:"route,omitempty"` // of lines, sse, envelope and a WebSocket
}

// An Envelope is a record of the frame "envelope": a message with its flags and
// length before it, as Connect, gRPC-web and gRPC have it. One of Data and B64.
type Envelope struct {
	Flags int    `json:"flags"`
	Data  string `json:"data,omitempty"`
	B64   string `json:"b64,omitempty"`
}

// A Message is what goes over a WebSocket, in either direction. A request to a
// wss:// address opens one; stream_next gives the other side's messages.
type Message struct {
	Op   string `json:"op"`             // "text" or "binary"
	Data string `json:"data,omitempty"` // of text
	B64  string `json:"b64,omitempty"`  // of binary
}

// StreamInfo tells of a stream that is read, or was.
type StreamInfo struct {
	Status   int                 `json:"status,omitempty"`
	Trailers map[string][]string `json:"trailers,omitempty"` // once the body is read
	Code     int                 `json:"code,omitempty"`     // of a WebSocket's close
	Reason   string              `json:"reason,omitempty"`
	Stdout   int64               `json:"stdout"` // bytes that the route delivered
	Stderr   int64               `json:"stderr"`
	Error    *Error              `json:"error,omitempty"`
}

// A MACCall asks for an HMAC with a secret that the module cannot read.
type MACCall struct {
	Alg     string `json:"alg"`    // "hmac-sha256", "hmac-sha512" or "hmac-sha1"
	Secret  string `json:"secret"` // the setting's key
	Data    string `json:"data,omitempty"`
	DataB64 string `json:"data_b64,omitempty"`
	Out     string `json:"out,omitempty"` // "hex" (default), "base64" or "base64url"
}

// A MACResult answers it.
type MACResult struct {
	MAC   string `json:"mac,omitempty"`
	Error *Error `json:"error,omitempty"`
}

// A StateCall touches the little that the host keeps for a provider between runs,
// 64 KiB in all.
type StateCall struct {
	Fn    string `json:"fn"` // "get", "set", "delete"
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
}

// A StateResult answers it. A key that is not there has no value.
type StateResult struct {
	Value string `json:"value,omitempty"`
	Found bool   `json:"found,omitempty"`
	Error *Error `json:"error,omitempty"`
}

// A Route makes the host deliver output that a vendor frames in JSON: a record
// whose member Field is Stdout or Stderr is decoded and emitted; all others reach
// the module.
type Route struct {
	Field  string `json:"field"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Data   string `json:"data"`
	As     string `json:"as,omitempty"` // "text" (default) or "base64"
}

// An HTTPResponse answers it.
type HTTPResponse struct {
	Status  int                 `json:"status,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	Body    string              `json:"body,omitempty"`
	BodyB64 string              `json:"body_b64,omitempty"`
	N       int64               `json:"n,omitempty"`      // bytes delivered to ref or emit
	Length  int64               `json:"length,omitempty"` // of the body if known, else -1
	Stream  int32               `json:"stream,omitempty"` // a handle for stream_next
	Error   *Error              `json:"error,omitempty"`
}

// A FileCall touches a file in a directory the user granted by name.
type FileCall struct {
	Fn   string `json:"fn"` // "stat", "list", "open", "create", "remove"
	Root string `json:"root"`
	Path string `json:"path"`
}

// A FileResult answers it.
type FileResult struct {
	Size   int64    `json:"size,omitempty"`
	Dir    bool     `json:"dir,omitempty"`
	Names  []string `json:"names,omitempty"`
	Handle int32    `json:"handle,omitempty"` // for ref_read and ref_write; a created file is kept when its handle is closed by stream_close
	Error  *Error   `json:"error,omitempty"`
}
