package abi

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write schema.json anew")

// messages are the types that cross the wall; those they are made of follow.
var messages = []any{
	DescribeRequest{}, Description{}, OpenRequest{}, Opened{}, ListRequest{}, Listing{}, ExecRequest{}, Exited{}, FileRequest{}, TreeRequest{},
	NameRequest{}, ExtendRequest{}, Extended{}, Plain{}, Done{}, Reply{}, Error{}, HTTPRequest{}, HTTPResponse{}, Envelope{}, Message{},
	StreamInfo{}, MACCall{}, MACResult{}, StateCall{}, StateResult{}, FileCall{}, FileResult{},
}

// exchanges are the requests and answers of exports, and of host functions that
// have such.
var exchanges = map[string][2]any{
	Describe: {DescribeRequest{}, Description{}}, Open: {OpenRequest{}, Opened{}}, List: {ListRequest{}, Listing{}}, Exec: {ExecRequest{}, Exited{}},
	ReadFile: {FileRequest{}, Done{}}, WriteFile: {FileRequest{}, Done{}}, Destroy: {Plain{}, Done{}}, Kill: {NameRequest{}, Done{}}, RemoveSnapshot: {NameRequest{}, Done{}},
	Snapshot: {NameRequest{}, Done{}}, Unpack: {TreeRequest{}, Done{}}, Pack: {TreeRequest{}, Done{}}, Extend: {ExtendRequest{}, Extended{}},
	"http": {HTTPRequest{}, HTTPResponse{}}, "http_start": {HTTPRequest{}, nil}, "http_wait": {nil, HTTPResponse{}}, "created": {Opened{}, nil},
	"fs": {FileCall{}, FileResult{}}, "last_error": {nil, Error{}}, "stream_info": {nil, StreamInfo{}}, "mac": {MACCall{}, MACResult{}},
	"state": {StateCall{}, StateResult{}},
}

// TestSchemaIsOfTheTypes makes the schema of the types and compares: a field that
// is only in one of them fails it, and so does one that is required in one alone.
func TestSchemaIsOfTheTypes(t *testing.T) {
	want := generate(t)
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("schema.json is not that of the types; write it anew: go test ./sdk/abi -update")
	}
}

// A message of ours is one of the schema: what is required is there, and nothing
// is there that is not described.
func TestMessagesFollowTheSchema(t *testing.T) {
	var s struct {
		Defs map[string]struct {
			Properties map[string]any
			Required   []string
		} `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(Schema()), &s); err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		name := reflect.TypeOf(m).Name()
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		def, ok := s.Defs[name]
		if !ok {
			t.Errorf("%s is not described", name)
		}
		for _, r := range def.Required {
			if _, there := fields[r]; !there {
				t.Errorf("%s: %s is required but left out when it is empty", name, r)
			}
		}
		for f := range fields {
			if _, known := def.Properties[f]; !known {
				t.Errorf("%s: %s is not described", name, f)
			}
		}
	}
	for _, e := range append(Required(), Optional()...) {
		if !strings.Contains(Schema(), `"`+e+`": {`) {
			t.Errorf("the export %s is not listed", e)
		}
	}
	for _, f := range Functions() {
		if !strings.Contains(Schema(), `"`+f.Name+`": {`) {
			t.Errorf("the function %s is not listed", f.Name)
		}
	}
}

func generate(t *testing.T) []byte {
	t.Helper()
	g := generator{docs: docs(t), defs: map[string]any{}}
	for _, m := range messages {
		g.define(reflect.TypeOf(m))
	}
	ref := func(of map[string]any, key string, m any) {
		if m != nil {
			of[key] = map[string]any{"$ref": "#/$defs/" + reflect.TypeOf(m).Name()}
		}
	}
	exports, functions := map[string]any{}, map[string]any{}
	for _, e := range append(Required(), Optional()...) {
		one := map[string]any{"required": slices.Contains(Required(), e)}
		ref(one, "request", exchanges[e][0])
		ref(one, "ok", exchanges[e][1])
		exports[e] = one
	}
	for _, f := range Functions() {
		one := map[string]any{"params": f.Params, "result": f.Result}
		ref(one, "request", exchanges[f.Name][0])
		ref(one, "answer", exchanges[f.Name][1])
		functions[f.Name] = one
	}
	data, err := json.MarshalIndent(map[string]any{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "talkops provider ABI",
		"description": "Messages between talkops and a provider that is a WebAssembly module. Unknown members are ignored on both sides. In a function's signature i is an i32, I an i64 and b the i64 offset of a block.",
		"x-abi":       []int{Major, Minor}, "x-marker": Marker, "x-namespace": Namespace,
		"x-exports": exports, "x-functions": functions, "$defs": g.defs,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

type generator struct {
	docs map[string]string // "Type" and "Type.Field"
	defs map[string]any
}

func (g *generator) define(t reflect.Type) {
	if _, done := g.defs[t.Name()]; done {
		return
	}
	properties, required := map[string]any{}, []string{}
	def := map[string]any{"type": "object", "properties": properties}
	g.defs[t.Name()] = def
	if d := g.docs[t.Name()]; d != "" {
		def["description"] = d
	}
	g.fields(t, properties, &required)
	if len(required) > 0 {
		slices.Sort(required)
		def["required"] = required
	}
}

func (g *generator) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			g.fields(f.Type, properties, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := g.typ(f.Type)
		if d := g.docs[t.Name()+"."+f.Name]; d != "" {
			p = maps.Clone(p)
			p["description"] = d
		}
		properties[name] = p
		if options == "" {
			*required = append(*required, name)
		}
	}
}

func (g *generator) typ(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[Text]():
		return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{
			"type": "object", "properties": map[string]any{"b64": map[string]any{"type": "string", "contentEncoding": "base64"}}, "required": []string{"b64"},
		}}}
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.typ(t.Elem())
	case reflect.Struct:
		g.define(t)
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.typ(t.Elem())}
	case reflect.Array:
		return map[string]any{"type": "array", "items": g.typ(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.typ(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	}
	return map[string]any{"type": "integer"}
}

// docs are the comments of the types and their fields.
func docs(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range []string{"abi.go", "host.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			for _, spec := range decl.Specs {
				typ := spec.(*ast.TypeSpec)
				out[typ.Name.Name] = oneLine(decl.Doc)
				if s, ok := typ.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						for _, n := range f.Names {
							out[typ.Name.Name+"."+n.Name] = oneLine(f.Comment)
						}
					}
				}
			}
		}
	}
	return out
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }
