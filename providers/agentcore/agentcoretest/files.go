package agentcoretest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"unicode/utf8"
)

var errPath = errors.New("the path must be relative to the working directory")

// path returns where the file call's name is. Only names below the session's
// directory are taken, and none that is absolute.
func (b *box) path(name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", &fs.PathError{Op: "open", Path: name, Err: errPath}
	}
	full := filepath.Join(b.dir, name)
	if _, err := b.machine.Path(full); err != nil {
		return "", err
	}
	return full, nil
}

// writeFiles writes all files or says which one could not be written. Parents
// are not made.
func writeFiles(s *Server, _ *http.Request, b *box, arguments json.RawMessage) result {
	var asked struct {
		Content []struct {
			Path string  `json:"path"`
			Text *string `json:"text"`
			Blob []byte  `json:"blob"`
		} `json:"content"`
	}
	if err := json.Unmarshal(arguments, &asked); err != nil || len(asked.Content) == 0 {
		return failure("content is required")
	}
	for _, file := range asked.Content {
		full, err := b.path(file.Path)
		if err != nil {
			return failure("Error writing files: %v", err)
		}
		data := file.Blob
		if file.Text != nil {
			data = []byte(*file.Text)
		}
		if err := os.WriteFile(full, data, 0o644); err != nil {
			return failure("Error writing files: %v", err)
		}
		b.machine.Own(full)
	}
	text := "Successfully wrote all " + itoa(int64(len(asked.Content))) + " files"
	return result{Content: []map[string]any{{"type": "text", "text": text}}}
}

func readFiles(s *Server, _ *http.Request, b *box, arguments json.RawMessage) result {
	var asked struct {
		Paths []string `json:"paths"`
	}
	if err := json.Unmarshal(arguments, &asked); err != nil || len(asked.Paths) == 0 {
		return failure("paths is required")
	}
	var res result
	for _, name := range asked.Paths {
		full, err := b.path(name)
		var data []byte
		if err == nil {
			data, err = os.ReadFile(full)
		}
		if err != nil {
			return failure("Error reading files: %v", err)
		}
		resource := map[string]any{"uri": "file:///" + name, "type": "text", "mimeType": "text/plain", "text": string(data)}
		if !utf8.Valid(data) {
			resource = map[string]any{"uri": "file:///" + name, "type": "blob", "mimeType": "application/octet-stream", "blob": base64.StdEncoding.EncodeToString(data)}
		}
		res.Content = append(res.Content, map[string]any{"type": "resource", "resource": resource})
	}
	return res
}

func listFiles(s *Server, _ *http.Request, b *box, arguments json.RawMessage) result {
	var asked struct {
		Directory string `json:"directoryPath"`
		Path      string `json:"path"`
	}
	json.Unmarshal(arguments, &asked)
	name := filepath.Join(".", asked.Directory, asked.Path)
	full, err := b.path(name)
	var entries []os.DirEntry
	if err == nil {
		entries, err = os.ReadDir(full)
	}
	if err != nil {
		return failure("Error listing files: %v", err)
	}
	res := result{Content: []map[string]any{}}
	for _, e := range entries {
		kind := "File"
		if e.IsDir() {
			kind = "Directory"
		}
		res.Content = append(res.Content, map[string]any{
			"type": "resource_link", "uri": "file:///" + filepath.Join(name, e.Name()), "name": e.Name(), "description": kind,
		})
	}
	return res
}

func removeFiles(s *Server, _ *http.Request, b *box, arguments json.RawMessage) result {
	var asked struct {
		Paths []string `json:"paths"`
	}
	if err := json.Unmarshal(arguments, &asked); err != nil || len(asked.Paths) == 0 {
		return failure("paths is required")
	}
	for _, name := range asked.Paths {
		full, err := b.path(name)
		if err == nil {
			err = os.Remove(full)
		}
		if err != nil {
			return failure("Error removing files: %v", err)
		}
	}
	return result{Content: []map[string]any{{"type": "text", "text": "Successfully removed " + itoa(int64(len(asked.Paths))) + " files"}}}
}
