package config

import (
	"slices"
	"strings"
)

// Schema returns the JSON Schema of a configuration file, for editors. Providers
// are the known names of sandbox providers.
func Schema(providers []string) map[string]any {
	root := table()
	for _, k := range slices.Concat(Keys(), TableKeys()) {
		for i, p := range k.Paths {
			at := root
			parts := strings.Split(p, ".")
			for _, part := range parts[:len(parts)-1] {
				at = child(at, part)
			}
			s := k.schema()
			if k.Name == "sandbox.provider" {
				s["examples"] = providers
			}
			if i > 0 {
				s["description"] = "Another name of " + k.Paths[0] + ": " + k.Help + "."
			}
			at["properties"].(map[string]any)[parts[len(parts)-1]] = s
		}
	}
	of := child(child(child(root, "sandboxes"), "providers"), "<name>")
	of["properties"].(map[string]any)["options"] = map[string]any{"type": "object", "description": "Passed to the provider."}
	of["properties"].(map[string]any)["allow_paths"] = map[string]any{
		"type": "array", "description": "Folders of this computer the module may use, by name.",
		"items": map[string]any{"type": "object", "required": []string{"name", "path"}, "additionalProperties": false, "properties": map[string]any{
			"name": map[string]any{"type": "string"}, "path": map[string]any{"type": "string"}, "mode": map[string]any{"enum": []string{"ro", "rw"}},
		}},
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "talkops configuration"
	return root
}

func table() map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}
}

// child returns the table called name in at; "<name>" stands for any.
func child(at map[string]any, name string) map[string]any {
	if name == "<name>" {
		if t, ok := at["additionalProperties"].(map[string]any); ok {
			return t
		}
		t := table()
		at["additionalProperties"] = t
		return t
	}
	properties := at["properties"].(map[string]any)
	if t, ok := properties[name].(map[string]any); ok {
		return t
	}
	t := table()
	properties[name] = t
	return t
}

// schema describes one value.
func (k Key) schema() map[string]any {
	s := map[string]any{"description": strings.ToUpper(k.Help[:1]) + k.Help[1:] + "."}
	switch k.Kind {
	case String:
		s["type"] = "string"
	case Bool:
		s["type"] = "boolean"
	case Int, Number:
		s["type"] = map[Kind]string{Int: "integer", Number: "number"}[k.Kind]
		s["minimum"] = k.Min
		if k.Max > 0 {
			s["maximum"] = k.Max
		}
	case Duration:
		s["type"] = "string"
		s["pattern"] = `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`
	case List:
		s["type"], s["items"] = "array", map[string]any{"type": "string"}
	}
	if len(k.Enum) > 0 {
		s["enum"] = k.Enum
	}
	if k.Default != nil {
		s["default"] = k.Default
		if k.Kind == Duration {
			s["default"] = Format(k.Default)
		}
	}
	return s
}
