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
