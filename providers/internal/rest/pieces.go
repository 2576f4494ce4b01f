package rest

import (
	"bytes"
	"io"
	"mime/multipart"
)

// Pieces is a body of several readers, one after the other. The transport of a
// module sends those that are Outside without reading them.
type Pieces struct {
	parts []io.Reader
	all   io.Reader
}

// Join returns the body that parts are together.
func Join(parts ...io.Reader) *Pieces {
	return &Pieces{parts: parts, all: io.MultiReader(parts...)}
}

// Parts are the readers. Who takes them does not Read.
func (p *Pieces) Parts() []io.Reader { return p.parts }

func (p *Pieces) Read(b []byte) (int, error) { return p.all.Read(b) }

// Close leaves the readers to whom they belong.
func (p *Pieces) Close() error { return nil }

// Form returns the multipart/form-data body of one field, unless it has no name, and
// one file, whose content may be in parts, and its media type.
func Form(field, value, file, filename string, content ...io.Reader) (*Pieces, string) {
	var head, tail bytes.Buffer
	w := multipart.NewWriter(&head)
	if field != "" {
		w.WriteField(field, value) // a buffer takes everything
	}
	w.CreateFormFile(file, filename)
	end := multipart.NewWriter(&tail)
	end.SetBoundary(w.Boundary())
	end.Close() // writes the last boundary, after a line's end
	return Join(append(append([]io.Reader{&head}, content...), &tail)...), w.FormDataContentType()
}
