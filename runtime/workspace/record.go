package workspace

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Record is one thing that was sent or came back, as it stands in a receipt. Names
// that are no UTF-8 are written as "hex:" and their bytes.
type Record struct {
	Path   rawText `json:"path"`
	Kind   Kind    `json:"kind"` // "deleted" of what is no more
	Mode   string  `json:"mode,omitempty"`
	Size   int64   `json:"size,omitempty"`   // bytes
	SHA256 string  `json:"sha256,omitempty"` // of a file; absent if it was sent in part
	Target rawText `json:"target,omitempty"` // of a link
}

// Deletion is the kind of a Record of what was deleted.
const Deletion Kind = "deleted"

func (e *Entry) record(name string) Record {
	if e == nil {
		return Record{Path: rawText(name), Kind: Deletion}
	}
	r := Record{Path: rawText(name), Kind: e.Kind, Size: e.Size, Target: rawText(e.Target)}
	if e.Kind != Link {
		r.Mode = fmt.Sprintf("%04o", e.Mode)
	}
	if sum, ok := strings.CutPrefix(e.Sum, "sha256:"); ok {
		if _, err := hex.DecodeString(sum); err == nil {
			r.SHA256 = sum
		}
	}
	return r
}

// Records are what left this computer by Upload, whole or in part, by name. What
// stood in the sandbox already did not.
func (p *Plan) Records() []Record {
	list := []Record{}
	if p == nil {
		return list
	}
	for _, name := range slices.Sorted(maps.Keys(p.sent)) {
		if e := p.sent[name]; !p.there[name] {
			list = append(list, e.record(name))
		}
	}
	return list
}

// Planned are what Upload is about to send, by name, without their content's sums.
// Unlike Records it may be asked for during an Upload.
func (p *Plan) Planned() []Record {
	list := []Record{}
	if p == nil {
		return list
	}
	for _, item := range p.Items {
		e := Entry{Kind: File, Mode: item.Mode.Perm(), Size: item.Size}
		switch {
		case item.Mode.IsDir():
			e = Entry{Kind: Dir, Mode: item.Mode.Perm()}
		case item.Link != "":
			e = Entry{Kind: Link, Target: item.Link}
		}
		list = append(list, e.record(item.Name))
	}
	slices.SortFunc(list, func(a, b Record) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return list
}

// Records are what came home, by name.
func (h *Home) Records() []Record {
	list := []Record{}
	if h == nil {
		return list
	}
	for _, c := range h.Changes {
		list = append(list, c.Now.record(c.Name))
	}
	return list
}
