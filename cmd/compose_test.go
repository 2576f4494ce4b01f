package cmd

import (
	"os"
	"path/filepath"
	"testing"
)

// The files of docker compose that name others are found wherever compose finds
// them.
func TestComposes(t *testing.T) {
	const plain = "services:\n  web:\n    image: example.com/web:1\n"
	for _, row := range []struct {
		name  string
		files map[string]string
		want  bool
	}{
		{"none", map[string]string{"main.tf": "x"}, false},
		{"a plain one", map[string]string{"compose.yaml": plain}, false},
		{"one that includes", map[string]string{"compose.yaml": "include:\n  - https://example.com/${AWS_SECRET_ACCESS_KEY}.git\n" + plain}, true},
		{"in quotes, with escapes", map[string]string{"docker-compose.yml": "\"\\x69nclude\": [oci://example.com/x]\n" + plain}, true},
		{"one that extends another", map[string]string{"compose.yml": plain + "    extends: {file: 'git@example.com:x', service: web}\n"}, true},
		{"over another", map[string]string{"compose.yaml": plain, "compose.override.yml": "include: [oci://example.com/x]\n"}, true},
		{"in the directory above", map[string]string{"../compose.yaml": "include: [oci://example.com/x]\n"}, true},
		{"an environment file", map[string]string{"compose.yaml": plain, ".env": "PORT=80\n"}, true},
		{"with a tag", map[string]string{"compose.yaml": "!!binary aW5jbHVkZQ==: [oci://example.com/x]\n" + plain}, true},
		{"with a tag in full", map[string]string{"compose.yaml": "? !<tag:yaml.org,2002:binary> aW5jbHVkZQ==\n: [oci://example.com/x]\n" + plain}, true},
		{"in UTF-16", map[string]string{"compose.yaml": "\xff\xfei\x00n\x00c\x00l\x00u\x00d\x00e\x00:\x00[\x00a\x00]\x00"}, true},
		{"with what is no tag", map[string]string{"compose.yaml": plain + "    command: test a != b\n"}, false},
		{"one that is empty", map[string]string{"compose.yaml": ""}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "shop")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range row.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := composes(dir); got != row.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
